/* SPDX-License-Identifier: Apache-2.0 */
#include "ids.h"

#include "warden_fixture.h"

#include <signal.h>

static struct ids ids;

static const struct ids as_root = { .mode = IDS_ROOT,
				    .uid_first = 1879048192u,
				    .gid_first = 1879048192u,
				    .slot_size = 65536,
				    .n_slots = 2 };
static const struct ids as_user = { .mode = IDS_RANGES,
				    .uid_first = 100000,
				    .gid_first = 200000,
				    .slot_size = 2048,
				    .n_slots = 2,
				    .own_uid = 1001,
				    .own_gid = 1002 };
static const struct ids single = {
	.mode = IDS_SINGLE, .slot_size = 1, .n_slots = 1, .own_uid = 1001, .own_gid = 1002
};

TEST(ids_of_two_slots_share_no_number)
{
	CHECK_INT(ids_first_uid(&as_root, 0), 1879048192u);
	CHECK_INT(ids_first_uid(&as_root, 1), 1879048192u + 65536);
	CHECK_INT(ids_host_uid(&as_root, 1, false), 1879048192u + 65536 + 1000);
	CHECK_INT(ids_host_uid(&as_root, 1, true), 1879048192u + 65536 + 1000);
	CHECK_INT(ids_host_uid(&as_user, 1, false), 100000 + 2048 + 1000);
	CHECK_INT(ids_host_gid(&as_user, 1, false), 200000 + 2048 + 1000);
	CHECK_INT(ids_outer_id(&as_user, 0, false), 1001);
	CHECK_INT(ids_outer_id(&as_user, 1, false), 1 + 2048 + 1000);
}

TEST(ids_of_the_user_himself_are_his_own)
{
	CHECK_INT(ids_host_uid(&as_user, 1, true), 1001);
	CHECK_INT(ids_host_gid(&as_user, 1, true), 1002);
	CHECK_INT(ids_outer_id(&as_user, 1, true), 0);
	CHECK_INT(ids_host_uid(&single, 0, false), 1001);
	CHECK_INT(ids_outer_id(&single, 0, false), 0);
	CHECK_INT(ids_first_uid(&single, 0), 1001);
}

TEST(ids_maps_are_in_the_kernels_own_form)
{
	char text[128];

	ids_expect_map(&as_root, 1, false, text, sizeof(text));
	CHECK_STR(text, "         0      65537      65535\n");
	ids_expect_map(&as_user, 0, false, text, sizeof(text));
	CHECK_STR(text, "         0          1       2048\n");
	ids_expect_map(&as_user, 0, true, text, sizeof(text));
	CHECK_STR(text, "         0          1       1000\n"
			"      1000          0          1\n"
			"      1001       1002       1047\n");
	ids_expect_map(&single, 0, false, text, sizeof(text));
	CHECK_STR(text, "      1000          0          1\n");
}

static int pipe_to_us[2];

/* Leases, says what it got, and holds it until it is killed. */
static pid_t start_holder(uint32_t slots, struct ids *ret_ids)
{
	CHECK_INT(pipe(pipe_to_us), 0);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_INT(ids_lease(&ids, slots, &err), 0);
		CHECK_INT(write(pipe_to_us[1], &ids, sizeof(ids)), (ssize_t)sizeof(ids));
		for (;;)
			pause();
	}
	CHECK(pid > 0);
	close(pipe_to_us[1]);
	CHECK_INT(read(pipe_to_us[0], ret_ids, sizeof(*ret_ids)), (ssize_t)sizeof(*ret_ids));
	return pid;
}

static void end(pid_t pid)
{
	CHECK_INT(kill(pid, SIGKILL), 0);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}

TEST(ids_lease_gives_two_processes_different_slots_until_they_die)
{
	struct ids one, two, three;

	pid_t first = start_holder(2, &one);
	if (one.mode == IDS_SINGLE) {
		end(first);
		SKIP("this user has no ranges of uids");
	}
	pid_t second = start_holder(1, &two);
	uint32_t distance = one.uid_first < two.uid_first ? two.uid_first - one.uid_first
							  : one.uid_first - two.uid_first;
	CHECK(distance >= (one.uid_first < two.uid_first ? 2 * one.slot_size : one.slot_size));
	end(first);
	/* The lock went with its holder; nothing had to be cleaned up. */
	pid_t third = start_holder(2, &three);
	CHECK_INT(three.uid_first, one.uid_first < two.uid_first ? one.uid_first : three.uid_first);
	CHECK(three.uid_first != two.uid_first);
	end(second);
	end(third);
}

TEST(ids_release_gives_a_slot_back)
{
	struct ids again;

	CHECK_INT(ids_lease(&ids, 1, &err), 0);
	if (ids.mode == IDS_SINGLE)
		SKIP("this user has no ranges of uids");
	ids_release(&ids);
	CHECK_INT(ids.lease_fd, -1);
	CHECK_INT(ids_lease(&again, 1, &err), 0);
	CHECK_INT(again.uid_first, ids.uid_first);
	ids_release(&again);
	ids_release(&again);
}

TEST(ids_lease_as_root_takes_ids_that_nobody_has)
{
	if (!is_root())
		SKIP("needs root");
	CHECK_INT(ids_lease(&ids, 3, &err), 0);
	CHECK_INT(ids.mode, IDS_ROOT);
	CHECK(ids.uid_first >= 1879048192u);
	CHECK_INT(ids.slot_size, 65536);
	CHECK_INT(ids.n_slots, 3);
	CHECK((uint64_t)ids.uid_first + 3 * 65536 < UINT32_MAX);
	ids_release(&ids);
	CHECK_INT(ids_lease(&ids, 40000, &err), -EDQUOT);
}

static void lease_in_a_namespace(void)
{
	enter_namespaces(0);
	CHECK_INT(ids_lease(&ids, 4, &err), 0);
	CHECK(ids.mode != IDS_ROOT); /* uid 0 here is nobody outside */
	ids_release(&ids);
}

TEST(ids_lease_of_root_in_a_namespace_is_not_roots)
{
	in_child(lease_in_a_namespace);
}

/* Real maps: U for a process in a fresh user namespace, then a sandbox in U. */
static void read_map(pid_t pid, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	CHECK(fd_read_text_at(AT_FDCWD, path, text, size) > 0);
}

static pid_t start_in_namespace(void)
{
	struct sys_clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	pid_t pid = sys_clone3(&args);

	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

TEST(ids_map_outer_maps_the_leased_slots)
{
	char text[256], want[256];

	CHECK_INT(ids_lease(&ids, 2, &err), 0);
	pid_t pid = start_in_namespace();
	if (pid < 0)
		SKIP("no user namespaces here");
	CHECK_INT(ids_map_outer(&ids, pid, &err), 0);
	read_map(pid, text, sizeof(text));
	uint32_t n = ids.n_slots * ids.slot_size;
	if (ids.mode == IDS_ROOT)
		snprintf(want, sizeof(want), "%10u %10u %10u\n%10u %10u %10u\n", 0,
			 ids.uid_first + n - 1, 1, 1, ids.uid_first, n - 1);
	else if (ids.mode == IDS_RANGES)
		snprintf(want, sizeof(want), "%10u %10u %10u\n%10u %10u %10u\n", 0, ids.own_uid, 1,
			 1, ids.uid_first, n);
	else
		snprintf(want, sizeof(want), "%10u %10u %10u\n", 0, ids.own_uid, 1);
	CHECK_STR(text, want);
	CHECK(ids_map_outer(&ids, pid, &err) < 0); /* once is all the kernel allows */
	end(pid);
	ids_release(&ids);
}

static void map_inside(void)
{
	static const struct ids mine = { .mode = IDS_SINGLE, .slot_size = 1, .n_slots = 1 };
	char text[128], want[128];

	enter_namespaces(0);
	int proc = open("/proc", O_RDONLY | O_DIRECTORY);
	pid_t pid = start_in_namespace();
	CHECK(pid > 0);
	CHECK_INT(ids_map_sandbox(&mine, 0, false, proc, pid, &err), 0);
	read_map(pid, text, sizeof(text));
	ids_expect_map(&mine, 0, false, want, sizeof(want));
	CHECK_STR(text, want);
	end(pid);
}

TEST(ids_map_sandbox_writes_what_is_expected)
{
	in_child(map_inside);
}
