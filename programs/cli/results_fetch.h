/* SPDX-License-Identifier: Apache-2.0
 *
 * results_fetch.h - brings one result back.  Between results.c and results_fetch.c only. */
#pragma once

#include "results.h"

struct agent_message;

/* Reads the file and delivers it.  One that cannot be had, or is too large, is complained about and
 * is no failure; -errno when the sandbox cannot be spoken to any more. */
int results_fetch(struct run *run, struct result_file *file, struct err *err);

/* The next message, within the time that all results have together. */
int results_wait(struct run *run, struct agent_message *ret_message, struct err *err);

/* Says that a result did not come back, and why. */
void results_complain(struct run *run, const char *name, const struct err *why);
