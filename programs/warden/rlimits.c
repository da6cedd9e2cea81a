/* SPDX-License-Identifier: Apache-2.0 */
#include "rlimits.h"

#include "base/err.h"
#include "wire/limits.h"

#include <errno.h>

int rlimits_plan(const struct limits *limits, bool has_cgroup, bool has_quota,
		 struct rlimit_want ret_want[RLIMITS_MAX])
{
	/* The agent sets the program's own before it starts it. */
	rlim_t files = limits->open_files > 1024 ? limits->open_files : 1024;
	/* The agent counts too. */
	rlim_t pids = limits->pids + (has_cgroup ? 32 : 1);
	int n = 0;

	/* 1, not 0: a piped core_pattern ignores 0 and would run a root helper. */
	ret_want[n++] = (struct rlimit_want){ RLIMIT_CORE, 1 };
	ret_want[n++] = (struct rlimit_want){ RLIMIT_NOFILE, files };
	ret_want[n++] = (struct rlimit_want){ RLIMIT_NPROC, pids };
	ret_want[n++] = (struct rlimit_want){ RLIMIT_MEMLOCK, 8u << 20 };
	ret_want[n++] = (struct rlimit_want){ RLIMIT_MSGQUEUE, 819200 };
	ret_want[n++] = (struct rlimit_want){ RLIMIT_SIGPENDING, 4096 };
	ret_want[n++] = (struct rlimit_want){ RLIMIT_NICE, 0 };
	ret_want[n++] = (struct rlimit_want){ RLIMIT_RTPRIO, 0 };
	if (!has_quota)
		ret_want[n++] = (struct rlimit_want){ RLIMIT_FSIZE, limits->disk_bytes };
	if (!has_cgroup)
		ret_want[n++] = (struct rlimit_want){ RLIMIT_DATA, limits->memory_bytes };
	return n;
}

int rlimits_apply(const struct rlimit_want *want, int n, struct err *err)
{
	for (int i = 0; i < n; i++) {
		struct rlimit now;
		if (getrlimit(want[i].resource, &now) < 0)
			return err_errno(err, errno, "read rlimit %d", want[i].resource);
		rlim_t value = want[i].value < now.rlim_max ? want[i].value : now.rlim_max;
		struct rlimit both = { .rlim_cur = value, .rlim_max = value };
		if (setrlimit(want[i].resource, &both) < 0)
			return err_errno(err, errno, "set rlimit %d", want[i].resource);
	}
	return 0;
}
