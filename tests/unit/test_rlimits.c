/* SPDX-License-Identifier: Apache-2.0 */
#include "rlimits.h"

#include "warden_fixture.h"
#include "wire/limits.h"

#include <signal.h>

static struct rlimit_want want[RLIMITS_MAX];

static int plan(bool has_cgroup, bool has_quota)
{
	struct limits limits = profile_find(NULL)->limits;

	limits.disk_bytes = 1u << 20;
	limits.memory_bytes = 256u << 20;
	limits.pids = 9;
	limits.open_files = 2000;
	return rlimits_plan(&limits, has_cgroup, has_quota, want);
}

/* The value for the resource, or -1. */
static long long value(int n, int resource)
{
	for (int i = 0; i < n; i++)
		if (want[i].resource == resource)
			return (long long)want[i].value;
	return -1;
}

TEST(rlimits_table_with_and_without_cgroup_and_quota)
{
	static const struct {
		bool has_cgroup, has_quota;
		long long nproc, fsize, data;
	} cases[] = {
		{ true, true, 41, -1, -1 },
		{ true, false, 41, 1 << 20, -1 },
		{ false, true, 10, -1, 256 << 20 },
		{ false, false, 10, 1 << 20, 256 << 20 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int n = plan(cases[i].has_cgroup, cases[i].has_quota);
		CHECK(n <= RLIMITS_MAX);
		CHECK_INT(value(n, RLIMIT_CORE), 1);
		CHECK_INT(value(n, RLIMIT_NOFILE), 2000);
		CHECK_INT(value(n, RLIMIT_NPROC), cases[i].nproc);
		CHECK_INT(value(n, RLIMIT_FSIZE), cases[i].fsize);
		CHECK_INT(value(n, RLIMIT_DATA), cases[i].data);
		CHECK_INT(value(n, RLIMIT_MEMLOCK), 8 << 20);
		CHECK_INT(value(n, RLIMIT_NICE), 0);
		CHECK_INT(value(n, RLIMIT_RTPRIO), 0);
		CHECK(value(n, RLIMIT_MSGQUEUE) > 0);
		CHECK(value(n, RLIMIT_SIGPENDING) > 0);
	}
}

TEST(rlimits_leave_the_agent_its_descriptors)
{
	struct limits limits = profile_find(NULL)->limits;

	limits.open_files = 16;
	int n = rlimits_plan(&limits, true, true, want);
	CHECK_INT(value(n, RLIMIT_NOFILE), 1024);
}

static void apply(void)
{
	int n = plan(true, false);
	struct rlimit now;

	CHECK_INT(rlimits_apply(want, n, &err), 0);
	for (int i = 0; i < n; i++) {
		CHECK_INT(getrlimit(want[i].resource, &now), 0);
		CHECK(now.rlim_cur <= want[i].value && now.rlim_max == now.rlim_cur);
	}
	/* What was promised holds: a file ends at a megabyte. */
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	int fd = openat(AT_FDCWD, tmp_path, O_TMPFILE | O_RDWR, 0600);
	CHECK_INT(ftruncate(fd, 1 << 20), 0);
	CHECK_INT(ftruncate(fd, (1 << 20) + 1), -1);
	CHECK_INT(errno, EFBIG);
}

TEST(rlimits_apply_sets_soft_and_hard)
{
	close(tmp_make());
	in_child(apply);
	tmp_finish();
}

static void apply_below(void)
{
	struct rlimit low = { 64, 64 }, now;
	struct rlimit_want one = { RLIMIT_NOFILE, 4096 };

	CHECK_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
	CHECK_INT(rlimits_apply(&one, 1, &err), 0);
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &now), 0);
	CHECK_INT(now.rlim_max, 64);
	CHECK_INT(now.rlim_cur, 64);
}

TEST(rlimits_apply_never_raises_a_limit)
{
	in_child(apply_below);
}

TEST(rlimits_apply_says_which_one_failed)
{
	struct rlimit_want bad = { 999, 1 };

	CHECK_INT(rlimits_apply(&bad, 1, &err), -EINVAL);
	CHECK_STR(err.text, "read rlimit 999: Invalid argument");
}
