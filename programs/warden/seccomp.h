/* SPDX-License-Identifier: Apache-2.0
 *
 * seccomp.h - puts the system call filter on the calling thread.
 *
 * The filter is a constant that was made at build time; loading it allocates nothing and takes
 * no lock, so it may be done between clone and exec.  It cannot be taken off again, and every
 * child has it too.  The thread must have no_new_privs, or CAP_SYS_ADMIN in its user namespace.
 *
 * Calls that no ordinary program makes (mount, bpf, ptrace, ...) are tripwires: with a listener
 * they wait until it answers, which must be EPERM; without one they are EPERM at once.  When the
 * last descriptor of the listener is closed they are ENOSYS. */
#pragma once

#include <stdbool.h>

struct err;

/* sha256 of the filter with tripwires, and of the one without, hex. */
extern const char seccomp_digest[65], seccomp_digest_plain[65];

/* With a listener *ret_listener is a new descriptor, CLOEXEC; without, ret_listener is not
 * used. */
int seccomp_load(bool with_listener, int *ret_listener, struct err *err);
