/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"

#include "warden_fixture.h"

#include <signal.h>
#include <sys/mman.h>

static struct cgroup_host host;
static struct cgroup cgroup;
static struct limits limits;
static char group[64];

/* The kernel's own cgroups; where we may make none there is nothing to see. */
static void make(void)
{
	snprintf(group, sizeof(group), "cay-unit-%d", getpid());
	cgroup_probe(&host, group);
	if (!host.version)
		SKIP("no cgroup that we may use here");
	limits = profile_find(NULL)->limits;
	limits.memory_bytes = 64u << 20;
	limits.pids = 5;
	limits.cpu_millis = 500;
	CHECK_INT(cgroup_create(&cgroup, &host, "leaf", &limits, &err), 0);
}

static void finish(void)
{
	cgroup_destroy(&cgroup);
	CHECK(cgroup.host == NULL);
	cgroup_destroy(&cgroup);
	for (size_t i = 0; i < host.n; i++) {
		char leaf[128];
		snprintf(leaf, sizeof(leaf), "%s/leaf", group);
		CHECK_INT(faccessat(host.at[i].base_fd, leaf, F_OK, 0), -1);
	}
	char base[600];
	snprintf(base, sizeof(base), "%.500s/%s", host.at[0].base, group);
	cgroup_probe_finish(&host);
	CHECK_INT(access(base, F_OK), -1);
}

static long long number(enum controller controller, const char *v1, const char *v2)
{
	char text[64];

	for (size_t i = 0; i < host.n; i++)
		if (host.at[i].controllers & 1u << controller) {
			CHECK(fd_read_text_at(cgroup.dir[i], host.version == 2 ? v2 : v1, text,
					      sizeof(text)) > 0);
			return atoll(text);
		}
	return -1;
}

/* A child that moves itself in as the agent's children do, and then runs. */
static pid_t start_inside(void (*run)(void))
{
	int tasks[CGROUP_LEAF_MAX];
	int n = cgroup_open_tasks(&cgroup, tasks, &err);

	CHECK_INT(n, host.n);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < n; i++)
			CHECK_INT(write(tasks[i], "0", 1), 1);
		run();
		_exit(0);
	}
	for (int i = 0; i < n; i++) {
		CHECK_INT(fcntl(tasks[i], F_GETFD), FD_CLOEXEC);
		close(tasks[i]);
	}
	return pid;
}

static int wait_for(pid_t pid)
{
	int status = -1;

	CHECK_INT(waitpid(pid, &status, 0), pid);
	return status;
}

TEST(cgroup_create_writes_the_limits_and_destroy_leaves_nothing)
{
	make();
	CHECK_INT(number(CTL_MEMORY, "memory.limit_in_bytes", "memory.max"), 64 << 20);
	CHECK_INT(number(CTL_PIDS, "pids.max", "pids.max"), 5);
	CHECK_INT(number(CTL_CPU, "cpu.cfs_quota_us", "cpu.max"), 50000);
	for (size_t i = 0; i < host.n; i++)
		CHECK(cgroup.inode[i] != 0);
	finish();
}

TEST(cgroup_limits_can_change)
{
	make();
	limits.memory_bytes = 32u << 20;
	limits.pids = 9;
	CHECK_INT(cgroup_set_limits(&cgroup, &limits, &err), 0);
	CHECK_INT(number(CTL_MEMORY, "memory.limit_in_bytes", "memory.max"), 32 << 20);
	limits.memory_bytes = 128u << 20; /* memsw must not be in the way upwards either */
	CHECK_INT(cgroup_set_limits(&cgroup, &limits, &err), 0);
	CHECK_INT(number(CTL_MEMORY, "memory.limit_in_bytes", "memory.max"), 128 << 20);
	CHECK_INT(number(CTL_PIDS, "pids.max", "pids.max"), 9);
	finish();
}

static void eat(void)
{
	for (;;) {
		char *memory = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			_exit(9);
		memset(memory, 1, 4 << 20);
	}
}

static void let_child_eat(void)
{
	pid_t pid = fork();

	if (pid == 0)
		eat();
	_exit(WIFSIGNALED(wait_for(pid)) ? 7 : 8);
}

TEST(cgroup_counts_an_oom_of_a_child_too)
{
	struct usage usage = { 0 };

	make();
	cgroup_usage(&cgroup, &usage);
	CHECK_INT(usage.oom_kills, 0);
	CHECK_INT(WEXITSTATUS(wait_for(start_inside(let_child_eat))), 7);
	cgroup_usage(&cgroup, &usage);
	CHECK_INT(usage.oom_kills, 1);
	CHECK(usage.peak_memory_bytes >= 60u << 20 && usage.peak_memory_bytes <= 64u << 20);
	finish();
}

static void fork_on(void)
{
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		if (pid == 0)
			for (;;)
				pause();
		if (pid < 0)
			_exit(errno == EAGAIN ? i : 99);
	}
	_exit(98);
}

/* What the forks left behind; the cgroup must be empty to go. */
static void kill_all(void)
{
	char text[4096];

	CHECK(fd_read_text_at(cgroup.dir[0], "cgroup.procs", text, sizeof(text)) > 0);
	for (char *at = text; *at; at += strcspn(at, "\n") + 1)
		CHECK_INT(kill(atoi(at), SIGKILL), 0);
}

TEST(cgroup_counts_forks_that_were_refused)
{
	struct usage usage = { 0 };

	make();
	CHECK_INT(WEXITSTATUS(wait_for(start_inside(fork_on))), 4);
	cgroup_usage(&cgroup, &usage);
	CHECK(usage.pids_denied >= 1);
	CHECK(usage.peak_pids >= 4 && usage.peak_pids <= 5);
	CHECK(!cgroup_is_crowded(&cgroup));
	kill_all();
	finish();
}

TEST(cgroup_with_more_than_a_few_processes_is_crowded)
{
	make();
	limits.pids = 12;
	CHECK_INT(cgroup_set_limits(&cgroup, &limits, &err), 0);
	CHECK_INT(WEXITSTATUS(wait_for(start_inside(fork_on))), 11);
	CHECK(cgroup_is_crowded(&cgroup));
	kill_all();
	finish();
}

static void spin(void)
{
	for (volatile int i = 0;; i++)
		;
}

TEST(cgroup_freeze_stops_the_code_and_its_clock)
{
	struct usage before = { 0 }, after = { 0 }, later = { 0 };

	make();
	pid_t pid = start_inside(spin);
	usleep(100000);
	CHECK_INT(cgroup_freeze(&cgroup, true, &err), 0);
	usleep(50000); /* v2 freezes a little later than it says */
	cgroup_usage(&cgroup, &before);
	usleep(200000);
	cgroup_usage(&cgroup, &after);
	CHECK(before.cpu_us > 1000);
	CHECK(after.cpu_us - before.cpu_us < 20000);
	CHECK_INT(cgroup_freeze(&cgroup, false, &err), 0);
	cgroup_lift_quota(&cgroup);
	usleep(200000);
	cgroup_usage(&cgroup, &later);
	CHECK(later.cpu_us > after.cpu_us + 20000);
	kill(pid, SIGKILL);
	wait_for(pid);
	finish();
}

TEST(cgroup_lift_quota_takes_the_quota_away)
{
	make();
	cgroup_lift_quota(&cgroup);
	CHECK_INT(number(CTL_CPU, "cpu.cfs_quota_us", "cpu.max"), host.version == 2 ? 0 : -1);
	finish();
}

TEST(cgroup_enforcement_names_what_holds)
{
	struct enforcement by = { .memory = BY_WATCHER,
				  .pids = BY_RLIMIT,
				  .open_files = BY_RLIMIT };

	make();
	cgroup_enforcement(&cgroup, &by);
	CHECK_INT(by.memory, host.version == 2 ? BY_CGROUP2 : BY_CGROUP1);
	CHECK_INT(by.pids, by.memory);
	CHECK_INT(by.open_files, BY_RLIMIT);
	CHECK_INT(by.io, BY_NOBODY);
	finish();
}

TEST(cgroup_limit_of_a_device_that_is_none_holds_nothing)
{
	make();
	cgroup_limit_io(&cgroup, 0, &limits);
	CHECK(!cgroup.has_io);
	finish();
}

TEST(cgroup_that_was_not_made_does_no_harm)
{
	struct cgroup none = { 0 };
	struct usage usage = { .cpu_us = 5 };
	struct enforcement by = { .memory = BY_WATCHER };

	cgroup_usage(&none, &usage);
	CHECK_INT(usage.cpu_us, 5);
	cgroup_enforcement(&none, &by);
	CHECK_INT(by.memory, BY_WATCHER);
	CHECK_INT(cgroup_freeze(&none, true, &err), -EOPNOTSUPP);
	CHECK(!cgroup_is_crowded(&none));
	cgroup_lift_quota(&none);
	cgroup_limit_io(&none, 0, &limits);
	cgroup_destroy(&none);
}
