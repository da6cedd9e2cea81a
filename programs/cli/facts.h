/* SPDX-License-Identifier: Apache-2.0
 *
 * facts.h - the facts of a run as JSON: the same words in the document of --json and in the
 * receipt.  Each returns a new object, or NULL without memory (which the caller may put into
 * json_object_set_new(): that fails then, and is noticed there). */
#pragma once

#include <jansson.h>

struct run;

json_t *facts_runtime(const struct run *run);   /* null for a plain program */
json_t *facts_isolation(const struct run *run); /* tier asked and got, layers */
json_t *facts_limits(const struct run *run);    /* numbers, each with enforced_by */
json_t *facts_usage(const struct run *run);
json_t *facts_cause(const struct run *run); /* number, limit, retryable, message */
json_t *facts_flags(const struct run *run);
json_t *facts_denied(const struct run *run);
