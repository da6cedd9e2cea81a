/* SPDX-License-Identifier: Apache-2.0
 *
 * version.h - versions are numbers with dots: 3.12.1.  A shorter one stands for all that begin
 * with it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Digits and single dots, at most 24 bytes. */
bool version_is_valid(const char *version);

/* Number by number; a missing one counts as 0.  < 0, 0 or > 0. */
int version_compare(const char *a, const char *b);

/* Is `version` (3.12.1) one of those that `wanted` (3.12, or empty) stands for? */
bool version_matches(const char *version, const char *wanted);

/* Does it lie from `oldest` to the last of `newest`?  Empty bounds are open. */
bool version_is_between(const char *version, const char *oldest, const char *newest);

/* The first `parts` numbers of it. */
void version_cut(const char *version, size_t parts, char *ret_text, size_t size);
