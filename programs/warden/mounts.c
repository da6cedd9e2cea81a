/* SPDX-License-Identifier: Apache-2.0 */
#include "mounts.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/path.h"
#include "base/sys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The kernel says on the context itself what it did not like. */
static int refused(int context, const char *type, struct err *err)
{
	int errnum = errno;
	char why[200];
	ssize_t n = read(context, why, sizeof(why) - 1);

	if (n > 2) {
		why[n] = '\0';
		why[strcspn(why, "\n")] = '\0';
		return err_errno(err, errnum, "make a new %s (%s)", type, why + 2);
	}
	return err_errno(err, errnum, "make a new %s", type);
}

int mounts_new(const char *type, const struct mount_option *options, unsigned attrs,
	       struct err *err)
{
	auto_close int context = sys_fsopen(type, FSOPEN_CLOEXEC);

	if (context < 0)
		return err_errno(err, errno, "open the file system '%s'", type);
	for (; options && options->key; options++) {
		unsigned cmd = options->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
		if (sys_fsconfig(context, cmd, options->key, options->value, 0) < 0)
			return refused(context, type, err);
	}
	if (sys_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return refused(context, type, err);
	int fd = sys_fsmount(context, FSMOUNT_CLOEXEC, attrs);
	return fd < 0 ? refused(context, type, err) : fd;
}

int mounts_clone(int dirfd, const char *path, unsigned attrs, struct err *err)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (path[0] ? 0 : AT_EMPTY_PATH);
	auto_close int fd = sys_open_tree(dirfd, path, flags | AT_SYMLINK_NOFOLLOW);

	if (fd < 0)
		return err_errno(err, errno, "take the mount at '%s'", path);
	int r = attrs ? mounts_restrict(fd, attrs, err) : 0;
	return r < 0 ? r : take_fd(&fd);
}

int mounts_overlay(const char *upper, const char *lower, struct err *err)
{
	char lowerdir[256];
	struct mount_option options[] = {
		{ "lowerdir", lowerdir },
		{ "userxattr", NULL },
		{ 0 },
	};

	snprintf(lowerdir, sizeof(lowerdir), "%s:%s", upper, lower);
	return mounts_new(
		"overlay", options,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME, err);
}

int mounts_attach(int mount_fd, int root_fd, const char *target, struct err *err)
{
	auto_close int fd = path_open_in_root(root_fd, target, O_PATH, 0);

	if (fd < 0)
		return err_errno(err, -fd, "open '%s' inside the sandbox", target);
	if (sys_move_mount(mount_fd, "", fd, "",
			   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_errno(err, errno, "attach a mount at '%s'", target);
	return 0;
}

int mounts_restrict(int mount_fd, unsigned attrs, struct err *err)
{
	struct mount_attr attr = { .attr_set = attrs, .propagation = MS_PRIVATE };

	if (attrs & MOUNT_ATTR_NOATIME)
		attr.attr_clr = MOUNT_ATTR__ATIME;
	if (sys_mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr) == 0)
		return 0;
	/* An ordinary user may not touch how times are kept on a mount of the host's. */
	if (errno == EPERM && (attrs & MOUNT_ATTR_NOATIME))
		return mounts_restrict(mount_fd, attrs & ~(unsigned)MOUNT_ATTR_NOATIME, err);
	return err_errno(err, errno, "restrict a mount");
}

int mounts_pivot(int root_fd, struct err *err)
{
	if (fchdir(root_fd) < 0)
		return err_errno(err, errno, "enter the new root");
	/* The old root ends up on top of the new one, and is let go at once. */
	if (sys_pivot_root(".", ".") < 0)
		return err_errno(err, errno, "pivot into the new root");
	if (sys_umount2(".", SYS_MNT_DETACH) < 0)
		return err_errno(err, errno, "let go of the old root");
	if (chdir("/") < 0)
		return err_errno(err, errno, "enter '/'");
	return 0;
}
