/* SPDX-License-Identifier: Apache-2.0
 *
 * seccomp_filter.h - the filter as data, made at build time from tools/seccomp_policy.c.
 *
 * Tripwires of seccomp_filter wait for a listener; in seccomp_filter_plain they are EPERM at
 * once.  Otherwise the two are the same. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

extern const size_t seccomp_filter_len, seccomp_filter_plain_len;
extern const struct sock_filter seccomp_filter[], seccomp_filter_plain[];

/* sha256 of the programs' bytes, hex. */
extern const char seccomp_digest[65], seccomp_digest_plain[65];
