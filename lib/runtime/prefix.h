/* SPDX-License-Identifier: Apache-2.0
 *
 * prefix.h - may an interpreter's prefix be shown to code that nobody has read?
 *
 * The code sees every byte of it.  So it must be a tree that holds a runtime and nothing else,
 * complete in itself, and readable for the sandbox's user. */
#pragma once

#include <stdbool.h>

struct err;

/* Is it part of /usr, which every sandbox sees anyway? */
bool prefix_is_in_usr(const char *prefix);

/* ERR_UNSUPPORTED with the reason when it must not or cannot be shown.  exe and prefix have no
 * symlinks in them; state_dir may be NULL. */
int prefix_check(const char *prefix, const char *exe, const char *state_dir, struct err *err);

/* May this user start it to ask it something?  Root starts nothing that another user can change,
 * or one found on PATH would be a way to become root. */
int prefix_check_startable(const char *exe, struct err *err);

/* Is path `dir` itself or below it? */
bool path_is_in(const char *path, const char *dir);
