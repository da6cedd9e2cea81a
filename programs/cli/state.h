/* SPDX-License-Identifier: Apache-2.0
 *
 * state.h - the directory in which cay keeps keys, receipts, layers and running sandboxes.
 *
 * /var/lib/cay as root, $XDG_STATE_HOME/cay or ~/.local/state/cay otherwise; CAY_STATE overrides.
 * It is made with mode 0700.  One that is there is never changed: it is refused when it is a link,
 * not ours, or writable by others, and so is one whose parents somebody else could swap. */
#pragma once

#include <limits.h>

struct err;

/* Makes the directory when it is missing, checks its owner and that it can be written, and gives
 * its absolute path. */
int state_dir(char ret_path[static PATH_MAX], struct err *err);

/* The path alone; nothing is made or checked. */
int state_path(char ret_path[static PATH_MAX], struct err *err);

/* The program `name` beside our own executable, in a build tree, or in libexec after an install.
 * The environment variable `override`, when set, wins. */
int state_find_program(char ret_path[static PATH_MAX], const char *name, const char *override,
		       struct err *err);
