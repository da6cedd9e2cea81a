/* SPDX-License-Identifier: Apache-2.0
 *
 * rlimits.h - the second line of limits, which hold per process or per uid.
 *
 * Set inside the sandbox's user namespace: RLIMIT_NPROC then counts this sandbox alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

struct err;
struct limits;

#define RLIMITS_MAX 12

struct rlimit_want {
	int resource;
	rlim_t value; /* soft and hard */
};

/* The list for these limits.  Where a cgroup or a quota holds a limit exactly, and tells when it
 * was hit, the rlimit leaves it the first word.  Returns the length. */
int rlimits_plan(const struct limits *limits, bool has_cgroup, bool has_quota,
		 struct rlimit_want ret_want[RLIMITS_MAX]);

/* Sets them for this process.  A hard limit that is lower already stays. */
int rlimits_apply(const struct rlimit_want *want, int n, struct err *err);
