/* SPDX-License-Identifier: Apache-2.0
 *
 * landlock.h - a second opinion on paths: what the mount namespace shows, Landlock must also
 * allow.  Usable between clone and exec. */
#pragma once

#include <stdbool.h>

struct err;

/* The ABI of this kernel; 0 when it has no Landlock or it is switched off. */
int landlock_abi(void);

/* Restricts this process to: everything at the top of `/` but the canary's directory for reading
 * and running; /workspace, /tmp and /dev/shm for writing; /dev for its devices; /proc. no_new_privs
 * must be set. */
int landlock_restrict(int abi, struct err *err);
