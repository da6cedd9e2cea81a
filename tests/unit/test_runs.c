/* SPDX-License-Identifier: Apache-2.0 */
#include "runs.h"

#include "warden_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#define ID_A "baaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct run run;
static struct ids ids = { .mode = IDS_SINGLE, .slot_size = 1, .n_slots = 1, .lease_fd = -1 };
static struct cgroup cgroup;
static struct cgroup_host host;
static int state;

static void make_run(const char *id)
{
	CHECK_INT(run_create(&run, tmp_path, id, &err), 0);
	CHECK_INT(run_record(&run, &ids, &cgroup, &err), 0);
}

static bool has(const char *path)
{
	return faccessat(state, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A run whose warden is gone: made by a child that ended. */
static void make_dead_run(const char *id)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		make_run(id);
		CHECK_INT(path_make_dirs(run.dir_fd, "workspace/a/b", 0755), 0);
		make_file(run.dir_fd, "workspace/a/f", "x", 0);
		_exit(0);
	}
	int status = -1;
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	char path[64];
	snprintf(path, sizeof(path), "runs/%s/record", id);
	CHECK(has(path));
}

TEST(run_has_a_locked_directory_of_its_own)
{
	state = tmp_make();
	make_run(ID_A);
	CHECK(has("runs/" ID_A "/lock"));
	CHECK(has("runs/" ID_A "/record"));
	CHECK(!has("runs/." ID_A));
	struct stat st;
	CHECK_INT(fstat(run.dir_fd, &st), 0);
	CHECK_INT(st.st_mode & 0777, 0700);
	struct run again;
	CHECK_INT(run_create(&again, tmp_path, ID_A, &err), -ENOTEMPTY);
	CHECK(!has("runs/." ID_A));
	CHECK(has("runs/" ID_A "/lock"));
	run_destroy(&run);
	CHECK(!has("runs/" ID_A));
	run_destroy(&run);
	tmp_finish();
}

TEST(run_in_a_state_directory_that_is_not_there_says_so)
{
	CHECK_INT(run_create(&run, "/proc/none", ID_A, &err), -ENOENT);
	CHECK_STR(err.text, "open the state directory '/proc/none': No such file or directory");
	run_destroy(&run);
}

TEST(sweep_takes_a_dead_run_and_leaves_a_live_one)
{
	state = tmp_make();
	make_dead_run(ID_A);
	make_run(ID_B);
	/* Only what has a run's name is ours. */
	CHECK_INT(mkdirat(state, "runs/other", 0700), 0);
	CHECK_INT(mkdirat(state, "runs/xaaaaaaaaaaaaaaaaaaaaaaaaaa", 0700), 0);
	pid_t sweeper = fork();
	if (sweeper == 0) {
		runs_sweep(tmp_path);
		_exit(0);
	}
	CHECK_INT(waitpid(sweeper, NULL, 0), sweeper);
	CHECK(!has("runs/" ID_A));
	CHECK(has("runs/" ID_B "/record"));
	CHECK(has("runs/other"));
	CHECK(has("runs/xaaaaaaaaaaaaaaaaaaaaaaaaaa"));
	run_destroy(&run);
	tmp_finish();
}

TEST(sweep_waits_with_a_run_that_is_just_being_made)
{
	state = tmp_make();
	CHECK_INT(path_make_dirs(state, "runs/." ID_A, 0700), 0);
	int maker = openat(state, "runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(flock(maker, LOCK_SH), 0);
	runs_sweep(tmp_path);
	CHECK(has("runs/." ID_A));
	close(maker); /* it died */
	runs_sweep(tmp_path);
	CHECK(!has("runs/." ID_A));
	tmp_finish();
}

/* A link where a run should be leads nowhere. */
TEST(sweep_follows_no_link)
{
	state = tmp_make();
	CHECK_INT(path_make_dirs(state, "runs", 0700), 0);
	CHECK_INT(path_make_dirs(state, "keep/x", 0700), 0);
	CHECK_INT(symlinkat("../keep", state, "runs/" ID_A), 0);
	runs_sweep(tmp_path);
	CHECK(has("keep/x"));
	tmp_finish();
}

static void make_cgroup(void)
{
	struct limits limits = profile_find(NULL)->limits;
	char group[64];

	snprintf(group, sizeof(group), "cay-unit-%d", getpid());
	cgroup_probe(&host, group);
	if (!host.version)
		SKIP("no cgroup that we may use here");
	state = tmp_make();
	CHECK_INT(cgroup_create(&cgroup, &host, ID_A, &limits, &err), 0);
}

static bool has_cgroup(void)
{
	char path[128];
	int n = 0;

	snprintf(path, sizeof(path), "%s/%s", host.group, ID_A);
	for (size_t i = 0; i < host.n; i++)
		n += faccessat(host.at[i].base_fd, path, F_OK, 0) == 0;
	CHECK(n == 0 || n == (int)host.n);
	return n > 0;
}

TEST(sweep_removes_the_cgroup_of_a_dead_run_and_who_is_in_it)
{
	int tasks[CGROUP_LEAF_MAX];

	make_cgroup();
	make_dead_run(ID_A);
	CHECK_INT(cgroup_open_tasks(&cgroup, tasks, &err), host.n);
	pid_t left = fork();
	if (left == 0) {
		for (size_t i = 0; i < host.n; i++)
			CHECK_INT(write(tasks[i], "0", 1), 1);
		close(tasks[0]);
		for (;;)
			pause();
	}
	char text[64];
	do {
		CHECK(fd_read_text_at(cgroup.dir[host.n - 1], "cgroup.procs", text, sizeof(text)) >=
		      0);
	} while (atoi(text) != left);
	signal(SIGCHLD, SIG_IGN); /* a zombie would keep its cgroup */
	runs_sweep(tmp_path);
	CHECK_INT(kill(left, 0), -1);
	CHECK(!has("runs/" ID_A));
	CHECK(!has_cgroup());
	CHECK_INT(faccessat(host.at[0].base_fd, host.group, F_OK, 0), -1);
	cgroup_destroy(&cgroup);
	cgroup_probe_finish(&host);
	tmp_finish();
}

/* The same path, made again by somebody else: not what the record names. */
TEST(sweep_leaves_a_cgroup_with_another_inode)
{
	make_cgroup();
	for (size_t i = 0; i < host.n; i++)
		cgroup.inode[i]++;
	make_dead_run(ID_A);
	runs_sweep(tmp_path);
	CHECK(!has("runs/" ID_A));
	CHECK(has_cgroup());
	cgroup_destroy(&cgroup);
	CHECK(!has_cgroup());
	cgroup_probe_finish(&host);
	tmp_finish();
}

/* The warden died between the record and the inodes. */
TEST(sweep_removes_a_cgroup_that_was_only_announced)
{
	make_cgroup();
	memset(cgroup.inode, 0, sizeof(cgroup.inode));
	make_dead_run(ID_B);
	runs_sweep(tmp_path);
	CHECK(has_cgroup()); /* it has another run's name */
	make_dead_run(ID_A);
	runs_sweep(tmp_path);
	CHECK(!has_cgroup());
	cgroup_destroy(&cgroup);
	cgroup_probe_finish(&host);
	tmp_finish();
}

TEST(sweep_believes_no_record_that_makes_no_sense)
{
	static const char *const records[] = {
		"",
		"cgroup",
		"cgroup x /tmp",
		"cgroup 1 relative\n",
		"ids 9 9\n",
		"cgroup 18446744073709551616 /\n",
		"cgroup 2 proc\n",
	};
	char path[64];

	state = tmp_make();
	for (size_t i = 0; i < ARRAY_LEN(records); i++) {
		make_dead_run(ID_A);
		snprintf(path, sizeof(path), "runs/%s/record", ID_A);
		make_file(state, path, records[i], 0600);
		runs_sweep(tmp_path);
		CHECK(!has("runs/" ID_A));
	}
	/* A directory of ours, with the right inode, is no cgroup: it is removed only if empty. */
	struct stat st;
	char record[128];
	CHECK_INT(path_make_dirs(state, "keep/full", 0700), 0);
	CHECK_INT(fstatat(state, "keep", &st, 0), 0);
	make_dead_run(ID_A);
	snprintf(record, sizeof(record), "cgroup %llu %s/keep\n", (unsigned long long)st.st_ino,
		 tmp_path);
	make_file(state, path, record, 0600);
	runs_sweep(tmp_path);
	CHECK(has("keep/full"));
	tmp_finish();
}

static void sweep_foreign_files(void)
{
	/* As a user with ranges: files of a sandbox's uid can only go through U. */
	char path[128];

	CHECK_INT(ids_lease(&ids, 1, &err), 0);
	if (ids.mode != IDS_RANGES)
		SKIP("needs an ordinary user with ranges of uids");
	state = open(tmp_path, O_RDONLY | O_DIRECTORY);
	make_dead_run(ID_A);
	snprintf(path, sizeof(path), "%s/runs/" ID_A "/workspace", tmp_path);
	struct sys_clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	int go[2];
	CHECK_INT(pipe(go), 0);
	pid_t pid = sys_clone3(&args);
	if (pid == 0) {
		char byte;
		CHECK_INT(read(go[0], &byte, 1), 1);
		CHECK(syscall(SYS_setresuid, 0, 0, 0) == 0);
		CHECK_INT(chmod(path, 0700), 0);
		CHECK_INT(chown(path, 1001, 1001), 0);
		_exit(0);
	}
	CHECK_INT(ids_map_outer(&ids, pid, &err), 0);
	CHECK_INT(write(go[1], "g", 1), 1);
	int status = -1;
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	ids_release(&ids);
	CHECK(openat(state, "runs/" ID_A "/workspace", O_RDONLY) < 0);
	runs_sweep(tmp_path);
	CHECK(!has("runs/" ID_A));
}

TEST(sweep_removes_files_of_the_sandboxs_own_uids)
{
	close(tmp_make());
	CHECK_INT(chmod(tmp_path, 0755), 0);
	pid_t pid = fork();
	if (pid == 0) {
		sweep_foreign_files();
		_exit(0);
	}
	int status = -1;
	CHECK_INT(waitpid(pid, &status, 0), pid);
	tmp_finish();
	if (WEXITSTATUS(status) == EXIT_SKIP)
		_exit(EXIT_SKIP);
	CHECK_INT(status, 0);
}
