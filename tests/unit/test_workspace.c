/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace.h"

#include "mounts.h"
#include "runs.h"
#include "warden_fixture.h"

#include <sys/statvfs.h>

#define ID_A "baaaaaaaaaaaaaaaaaaaaaaaaaa"
#define USER 1879049192u

static struct run run;
static struct workspace workspace;
static struct limits limits;

static void make(uint64_t bytes, uint64_t files)
{
	close(tmp_make());
	limits = profile_find(NULL)->limits;
	limits.disk_bytes = bytes;
	limits.disk_files = files;
	CHECK_INT(run_create(&run, tmp_path, ID_A, &err), 0);
	CHECK_INT(
		workspace_create(&workspace, &run, tmp_path, &limits, is_root(), USER, USER, &err),
		0);
}

static void make_loop(uint64_t bytes, uint64_t files)
{
	if (!is_root())
		SKIP("needs root");
	make(bytes, files);
	if (workspace.by != BY_LOOP_FILE) {
		run_destroy(&run);
		tmp_finish();
		SKIP("no loop device or no mke2fs here");
	}
}

static void finish(void)
{
	workspace_destroy(&workspace);
	CHECK_INT(workspace.mount_fd, -1);
	run_destroy(&run);
	tmp_finish();
}

/* Writes until the file system is full; returns the bytes that went in. */
static uint64_t fill(const char *name)
{
	static char block[65536];
	uint64_t sum = 0;
	int fd = openat(workspace.mount_fd, name, O_WRONLY | O_CREAT, 0600);

	CHECK(fd >= 0);
	for (ssize_t n; (n = write(fd, block, sizeof(block))) > 0;)
		sum += (uint64_t)n;
	CHECK_INT(errno, ENOSPC);
	close(fd);
	return sum;
}

TEST(workspace_as_root_ends_at_its_size)
{
	static const uint64_t sizes[] = { 1u << 20, 8u << 20, 50u << 20 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		make_loop(sizes[i], 100);
		uint64_t got = fill("f");
		printf("# %llu of %llu bytes\n", (unsigned long long)got,
		       (unsigned long long)sizes[i]);
		CHECK(got <= sizes[i]);
		CHECK(got + 65536 >= sizes[i]); /* all but a few blocks of its own bookkeeping */
		struct usage usage = { 0 };
		workspace_usage(&workspace, &usage);
		CHECK_INT(usage.disk_full, 1);
		CHECK(usage.disk_bytes >= got && usage.disk_bytes <= sizes[i] + 65536);
		CHECK_INT(usage.disk_files, 1);
		finish();
	}
}

TEST(workspace_as_root_ends_at_its_number_of_files)
{
	char name[16];
	int n = 0;

	make_loop(4u << 20, 64);
	for (;; n++) {
		snprintf(name, sizeof(name), "%d", n);
		int fd = openat(workspace.mount_fd, name, O_WRONLY | O_CREAT, 0600);
		if (fd < 0)
			break;
		close(fd);
	}
	CHECK_INT(errno, ENOSPC);
	CHECK(n >= 60 && n <= 64 + 64); /* mke2fs rounds up to whole groups of inodes */
	struct usage usage = { 0 };
	workspace_usage(&workspace, &usage);
	CHECK_INT(usage.disk_full, 1);
	CHECK_INT(usage.disk_files, n);
	finish();
}

TEST(workspace_is_empty_and_the_sandboxs_own)
{
	struct stat st;
	struct usage usage = { 0 };
	struct statvfs fs;

	make_loop(4u << 20, 100);
	CHECK_INT(fstat(workspace.mount_fd, &st), 0);
	CHECK_INT(st.st_uid, USER);
	CHECK_INT(fstatat(workspace.mount_fd, "output", &st, 0), 0);
	CHECK_INT(st.st_gid, USER);
	CHECK_INT(st.st_mode & 0777, 0755);
	CHECK_INT(faccessat(workspace.mount_fd, "lost+found", F_OK, 0), -1);
	CHECK_INT(fstatvfs(workspace.mount_fd, &fs), 0);
	CHECK_INT(fs.f_flag & (ST_NOSUID | ST_NODEV), ST_NOSUID | ST_NODEV);
	workspace_usage(&workspace, &usage);
	CHECK_INT(usage.disk_bytes, 0);
	CHECK_INT(usage.disk_files, 0);
	CHECK_INT(usage.disk_full, 0);
	finish();
}

/* The empty file system is made once; no run may find what another one wrote. */
TEST(workspaces_of_two_runs_share_nothing)
{
	make_loop(4u << 20, 100);
	make_file(workspace.mount_fd, "secret", "x", 0644);
	workspace_destroy(&workspace);
	run_destroy(&run);
	CHECK_INT(run_create(&run, tmp_path, ID_A, &err), 0);
	CHECK_INT(workspace_create(&workspace, &run, tmp_path, &limits, true, USER, USER, &err), 0);
	CHECK_INT(faccessat(workspace.mount_fd, "secret", F_OK, 0), -1);
	finish();
}

TEST(workspace_of_a_user_is_a_watched_directory)
{
	struct usage usage = { .disk_bytes = 5 };

	close(tmp_make());
	limits = profile_find(NULL)->limits;
	CHECK_INT(run_create(&run, tmp_path, ID_A, &err), 0);
	CHECK_INT(workspace_create(&workspace, &run, tmp_path, &limits, false, 0, 0, &err), 0);
	CHECK_INT(workspace.by, BY_WATCHER);
	CHECK_INT(workspace.mount_fd, -1);
	CHECK_INT(access(workspace.path, W_OK), 0);
	workspace_usage(&workspace, &usage);
	CHECK_INT(usage.disk_bytes, 5); /* the watcher's, not ours */
	CHECK(workspace_create(&workspace, &run, tmp_path, &limits, false, 0, 0, &err) < 0);
	finish();
}

static void show(void)
{
	struct stat st;

	CHECK_INT(unshare(CLONE_NEWNS), 0);
	CHECK_INT(sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	int dir = open(tmp_path, O_RDONLY | O_DIRECTORY);
	CHECK_INT(mkdirat(dir, "work", 0755), 0);
	make_file(dir, "work/f", "x", 0600);
	CHECK_INT(fchownat(dir, "work", 1001, 1002, 0), 0);
	CHECK_INT(fchownat(dir, "work/f", 1001, 1002, 0), 0);
	make_file(dir, "work/roots", "x", 0600);
	char path[64];
	snprintf(path, sizeof(path), "%s/work", tmp_path);
	int fd = workspace_show(path, false, USER, USER, &err);
	if (fd == -EINVAL)
		SKIP("no idmapped mounts here");
	CHECK(fd >= 0);
	CHECK_INT(fstatat(fd, "f", &st, 0), 0);
	CHECK_INT(st.st_uid, USER);
	CHECK_INT(st.st_gid, USER);
	/* Another owner's file is nobody's. */
	CHECK_INT(fstatat(fd, "roots", &st, 0), 0);
	CHECK_INT(st.st_uid, 65534);
	int ro = workspace_show(path, true, USER, USER, &err);
	CHECK(ro >= 0);
	CHECK_INT(openat(ro, "f", O_WRONLY), -1);
	CHECK_INT(errno, EROFS);
	/* What the sandbox's user makes is the owner's on the disk. */
	CHECK_INT(setegid(USER), 0);
	CHECK_INT(seteuid(USER), 0);
	make_file(fd, "new", "x", 0600);
	CHECK_INT(seteuid(0), 0);
	CHECK_INT(fstatat(dir, "work/new", &st, 0), 0);
	CHECK_INT(st.st_uid, 1001);
	CHECK_INT(st.st_gid, 1002);
}

TEST(workspace_show_maps_the_owner_to_the_sandboxs_user)
{
	if (!is_root())
		SKIP("needs root");
	close(tmp_make());
	CHECK_INT(chmod(tmp_path, 0755), 0);
	in_child(show);
	tmp_finish();
}

TEST(workspace_show_takes_directories_only)
{
	if (!is_root())
		SKIP("needs root");
	CHECK_INT(workspace_show("/etc/passwd", false, USER, USER, &err), -EINVAL);
	CHECK_STR(err.text, "the workspace '/etc/passwd' is not a directory");
	CHECK_INT(workspace_show("/proc/none", false, USER, USER, &err), -ENOENT);
}
