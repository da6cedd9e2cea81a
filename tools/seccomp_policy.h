/* SPDX-License-Identifier: Apache-2.0
 *
 * seccomp_policy.h - what code in a sandbox may ask of the kernel: the profile `std`.
 *
 * Every call that we know stands in exactly one of these tables; the generator refuses to build
 * otherwise.  A number that we do not know is ENOSYS, so that a newer libc falls back to what it
 * did before; a foreign architecture ends the process.
 *
 * Only the generator includes this file. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Harmless whatever the arguments are. */
extern const char *const policy_allowed[];

/* Answered with EPERM. */
extern const char *const policy_denied[];

/* Answered with EPERM, and counted: no ordinary program calls these. */
extern const char *const policy_tripwires[];

/* Answered as if the kernel were too old, because callers then do without. */
extern const char *const policy_missing[];

/* Answered with one certain errno; 0 is a success that does nothing. */
struct policy_answer {
	const char *call;
	int errnum;
};
extern const struct policy_answer policy_answers[];

#define POLICY_INT UINT32_C(0xffffffff) /* the kernel looks at the low half only; so do we */
#define POLICY_POINTER UINT64_MAX

#define POLICY_WHEN_MAX 3

/* Allowed when (argument & mask) == value for all of the comparisons; EPERM otherwise. */
struct policy_rule {
	const char *call;
	struct {
		uint64_t mask; /* 0: no comparison */
		uint64_t value;
		unsigned arg;
	} when[POLICY_WHEN_MAX];
};
extern const struct policy_rule policy_rules[];

/* Calls that libseccomp 2.5.4 has no name for.  From 424 on all architectures share numbers. */
struct policy_number {
	const char *call;
	int nr;
};
extern const struct policy_number policy_numbers[];
extern const struct policy_number policy_numbers_x86_64[];
