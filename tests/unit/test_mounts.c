/* SPDX-License-Identifier: Apache-2.0 */
#include "mounts.h"

#include "warden_fixture.h"

#include <sys/statvfs.h>

/* A directory that everything hangs in, as it will be the root of a sandbox. */
static int root;

static void enter(void)
{
	struct mount_option options[] = { { "size", "1m" }, { "mode", "755" }, { 0 } };

	enter_namespaces(0);
	root = mounts_new("tmpfs", options, MOUNT_ATTR_NOSUID, &err);
	CHECK(root >= 0);
	CHECK_INT(chdir("/"), 0);
	CHECK_INT(mounts_attach(root, AT_FDCWD, tmp_path, &err), 0);
	CHECK_INT(mkdirat(root, "dir", 0755), 0);
}

static unsigned long flags_of(int fd)
{
	struct statvfs fs;

	CHECK_INT(fstatvfs(fd, &fs), 0);
	return fs.f_flag;
}

static void in_namespace(void (*run)(void))
{
	close(tmp_make());
	in_child(run);
	tmp_finish();
}

static void new_flags(void)
{
	enter();
	int fd = mounts_new(
		"tmpfs", NULL,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &err);
	CHECK(fd >= 0);
	CHECK_INT(flags_of(fd) & (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC),
		  ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC);
	CHECK_INT(mkdirat(fd, "x", 0755), -1);
	CHECK_INT(errno, EROFS);
	CHECK_INT(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK(flags_of(root) & ST_NOSUID);
}

TEST(mounts_new_has_its_flags_before_anybody_sees_it)
{
	in_namespace(new_flags);
}

static void new_refused(void)
{
	struct mount_option bad[] = { { "nonsense", "1" }, { 0 } };

	enter();
	CHECK(mounts_new("tmpfs", bad, 0, &err) < 0);
	CHECK(strstr(err.text, "tmpfs") && strstr(err.text, "nonsense"));
	CHECK_INT(mounts_new("nosuchfs", NULL, 0, &err), -ENODEV);
}

TEST(mounts_new_says_what_the_kernel_did_not_like)
{
	in_namespace(new_refused);
}

static void size_holds(void)
{
	static char megabyte[2 << 20];

	enter();
	int fd = openat(root, "f", O_WRONLY | O_CREAT, 0600);
	CHECK_INT(write(fd, megabyte, sizeof(megabyte)), 1 << 20);
	CHECK_INT(write(fd, megabyte, 1), -1);
	CHECK_INT(errno, ENOSPC);
}

TEST(mounts_new_takes_a_size)
{
	in_namespace(size_holds);
}

static void clone_flags(void)
{
	enter();
	make_file(root, "dir/f", "x", 0644);
	int fd = mounts_clone(root, "dir", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, &err);
	CHECK(fd >= 0);
	CHECK_INT(faccessat(fd, "f", R_OK, 0), 0);
	CHECK_INT(openat(fd, "f", O_WRONLY), -1);
	CHECK_INT(errno, EROFS);
	CHECK(openat(root, "dir/f", O_WRONLY) >= 0); /* the original is as it was */
	int same = mounts_clone(fd, "", 0, &err);
	CHECK(same >= 0 && (flags_of(same) & ST_RDONLY));
	CHECK_INT(mounts_clone(root, "none", 0, &err), -ENOENT);
	CHECK_INT(mounts_restrict(same, MOUNT_ATTR_NOEXEC, &err), 0);
	CHECK(flags_of(same) & ST_NOEXEC);
}

TEST(mounts_clone_is_restricted_and_its_source_is_not)
{
	in_namespace(clone_flags);
}

/* The classic: an image with a link in it, so that a mount lands on the host. */
static void attach_link(void)
{
	enter();
	CHECK_INT(symlinkat("/etc", root, "absolute"), 0);
	CHECK_INT(symlinkat("../../../../../../etc", root, "relative"), 0);
	CHECK_INT(symlinkat("/dir", root, "inside"), 0);
	int fd = mounts_new("tmpfs", NULL, 0, &err);
	CHECK_INT(mounts_attach(fd, root, "absolute", &err), -ENOENT);
	CHECK_INT(mounts_attach(fd, root, "relative", &err), -ENOENT);
	CHECK_INT(mounts_attach(fd, root, "../../../../etc", &err), -ENOENT);
	make_file(fd, "mark", "", 0644);
	CHECK_INT(access("/etc/mark", F_OK), -1);
	CHECK_INT(mounts_attach(fd, root, "inside", &err), 0);
	CHECK_INT(faccessat(root, "dir/mark", F_OK, 0), 0);
}

TEST(mounts_attach_a_link_in_an_image_cannot_leave_the_root)
{
	in_namespace(attach_link);
}

static void overlay(void)
{
	char upper[64], lower[64];

	enter();
	CHECK_INT(mkdirat(root, "upper", 0755), 0);
	make_file(root, "upper/both", "upper", 0644);
	make_file(root, "dir/both", "lower", 0644);
	make_file(root, "dir/one", "lower", 0644);
	snprintf(upper, sizeof(upper), "%s/upper", tmp_path);
	snprintf(lower, sizeof(lower), "%s/dir", tmp_path);
	int fd = mounts_overlay(upper, lower, &err);
	if (fd < 0)
		SKIP("no overlay in a user namespace here");
	char text[16];
	CHECK_INT(fd_read_text_at(fd, "both", text, sizeof(text)), 5);
	CHECK_STR(text, "upper");
	CHECK_INT(faccessat(fd, "one", R_OK, 0), 0);
	CHECK_INT(mkdirat(fd, "x", 0755), -1);
	CHECK_INT(errno, EROFS);
	CHECK_INT(flags_of(fd) & (ST_NOSUID | ST_NODEV), ST_NOSUID | ST_NODEV);
	/* Inodes of its own: a lock in here is not one of the layer. */
	struct stat here, there;
	CHECK(fstatat(fd, "one", &here, 0) == 0 && fstatat(root, "dir/one", &there, 0) == 0);
	CHECK(here.st_dev != there.st_dev);
	CHECK(mounts_overlay("/proc/none", lower, &err) < 0);
}

TEST(mounts_overlay_is_read_only_and_its_own)
{
	in_namespace(overlay);
}

static void pivot(void)
{
	enter();
	CHECK_INT(mounts_pivot(root, &err), 0);
	CHECK_INT(access("/dir", F_OK), 0);
	CHECK_INT(access("/etc", F_OK), -1);
	CHECK_INT(access("/../etc", F_OK), -1);
	char here[64];
	CHECK(getcwd(here, sizeof(here)) != NULL);
	CHECK_STR(here, "/");
}

TEST(mounts_pivot_lets_go_of_everything_before)
{
	in_namespace(pivot);
}

static void pivot_nowhere(void)
{
	enter();
	int dir = openat(root, "dir", O_PATH | O_DIRECTORY);
	CHECK_INT(mounts_pivot(dir, &err), -EINVAL); /* no mount point */
	CHECK_INT(access("/etc", F_OK), 0);
}

TEST(mounts_pivot_needs_a_mount)
{
	in_namespace(pivot_nowhere);
}
