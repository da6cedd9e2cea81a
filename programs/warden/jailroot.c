/* SPDX-License-Identifier: Apache-2.0 */
#include "jailroot.h"

#include "mounts.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define NEW_ROOT "/n" /* in U, until we pivot into it */

static const struct {
	const char *name;
	unsigned minor_nr, major_nr;
} devices[] = {
	{ "null", 3, 1 },   { "zero", 5, 1 },    { "full", 7, 1 },
	{ "random", 8, 1 }, { "urandom", 9, 1 }, { "tty", 0, 5 },
};

static const struct {
	const char *name, *to;
} dev_links[] = {
	{ "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
	{ "ptmx", "pts/ptmx" },
};

static int new_tmpfs(uint64_t bytes, const char *mode, unsigned attrs, struct err *err)
{
	char size[32], inodes[32];
	struct mount_option options[] = {
		{ "size", size }, { "nr_inodes", inodes }, { "mode", mode }, { 0 }
	};

	snprintf(size, sizeof(size), "%" PRIu64, bytes);
	/* A page per inode is what small files cost anyway. */
	snprintf(inodes, sizeof(inodes), "%" PRIu64, bytes / 4096 + 64);
	return mounts_new("tmpfs", options, attrs, err);
}

/* What /dev has besides device nodes. */
static int fill_dev(int dev, struct err *err)
{
	if (mkdirat(dev, "pts", 0755) < 0 || mkdirat(dev, "shm", 0755) < 0)
		return err_errno(err, errno, "make the directories of /dev");
	for (size_t i = 0; i < ARRAY_LEN(dev_links); i++)
		if (symlinkat(dev_links[i].to, dev, dev_links[i].name) < 0)
			return err_errno(err, errno, "link '%s' in /dev", dev_links[i].name);
	return 0;
}

int jailroot_make_dev(struct err *err)
{
	auto_close int dev = new_tmpfs(65536, "755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);

	if (dev < 0)
		return dev;
	mode_t mask = umask(0);
	int r = fill_dev(dev, err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(devices); i++)
		if (mknodat(dev, devices[i].name, S_IFCHR | 0666,
			    makedev(devices[i].major_nr, devices[i].minor_nr)) < 0)
			r = err_errno(err, errno, "make the device '%s'", devices[i].name);
	umask(mask);
	return r < 0 ? r : take_fd(&dev);
}

/* An ordinary user cannot make device nodes: the host's are bound, each on a file of its name. */
static int bind_devices(int dev, struct err *err)
{
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
		auto_close int file =
			openat(dev, devices[i].name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		struct stat st;
		if (file < 0)
			return err_errno(err, errno, "make '%s' in /dev", devices[i].name);
		snprintf(path, sizeof(path), "/host/dev/%s", devices[i].name);
		auto_close int node =
			mounts_clone(AT_FDCWD, path, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
		if (node < 0)
			return node;
		if (fstat(node, &st) < 0 || !S_ISCHR(st.st_mode) ||
		    st.st_rdev != makedev(devices[i].major_nr, devices[i].minor_nr))
			return err_make(err, ERR_SETUP, "the host's '/dev/%s' is something else",
					devices[i].name);
		int r = mounts_attach(node, dev, devices[i].name, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int attach_dev(const struct jail_root *root, int root_fd, struct err *err)
{
	char ptys[16];
	struct mount_option options[] = {
		{ "newinstance", NULL },
		{ "ptmxmode", "0666" },
		{ "mode", "0620" },
		{ "max", ptys },
		{ 0 },
	};
	int r = 0;

	auto_close int own = -1;
	if (root->dev_fd < 0)
		own = new_tmpfs(65536, "755",
				MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODEV, err);
	int dev = root->dev_fd >= 0 ? root->dev_fd : own;
	if (dev < 0)
		return dev;
	if (root->dev_fd < 0)
		r = fill_dev(dev, err);
	if (r == 0)
		r = mounts_attach(dev, root_fd, "dev", err);
	if (r == 0 && root->dev_fd < 0)
		r = bind_devices(dev, err);
	if (r < 0)
		return r;
	snprintf(ptys, sizeof(ptys), "%u", root->limits->ptys);
	auto_close int pts =
		mounts_new("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	r = pts < 0 ? pts : mounts_attach(pts, dev, "pts", err);
	if (r < 0)
		return r;
	auto_close int shm = new_tmpfs(root->limits->shm_bytes, "1777",
				       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	r = shm < 0 ? shm : mounts_attach(shm, dev, "shm", err);
	return r < 0 || root->bare ? r : mounts_restrict(dev, MOUNT_ATTR_RDONLY, err);
}

/* Forty of these make the largest part of a sandbox's cost.  mount(2) does in one call what takes
 * three by descriptor, and all names are our own here: nobody else has seen these mounts. */
static int attach_mask(const struct proc_mask *mask, struct err *err)
{
	char source[64], target[64];

	snprintf(source, sizeof(source), NEW_ROOT "/.cay/mask/%s", mask->source);
	snprintf(target, sizeof(target), NEW_ROOT "/proc/%s", mask->name);
	if (sys_mount(source, target, NULL, MS_BIND, NULL) < 0)
		return err_errno(err, errno, "hide '/proc/%s'", mask->name);
	return 0;
}

/* Counted per user namespace, and above it against whoever started us: a sandbox must not use up
 * what his own programs need. */
static int limit_objects(struct err *err)
{
	static const struct {
		const char *path, *most;
	} limits[] = {
		{ NEW_ROOT "/proc/sys/user/max_inotify_instances", TEMPLATE_INOTIFY_INSTANCES },
		{ NEW_ROOT "/proc/sys/user/max_inotify_watches", TEMPLATE_INOTIFY_WATCHES },
		{ NEW_ROOT "/proc/sys/user/max_user_namespaces", "0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		int r = fd_write_text_at(AT_FDCWD, limits[i].path, limits[i].most);
		if (r < 0 && r != -ENOENT) /* a kernel without inotify has no limit for it */
			return err_errno(err, -r, "limit '%s'", limits[i].path);
	}
	return 0;
}

static int attach_proc(const struct jail_root *root, int root_fd, struct err *err)
{
	auto_close int proc = mounts_new(
		"proc", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
	int r = proc < 0 ? proc : mounts_attach(proc, root_fd, "proc", err);

	if (r == 0)
		r = limit_objects(err);
	for (int i = 0; r == 0 && !root->bare && i < root->n_masks; i++)
		r = attach_mask(&root->masks[i], err);
	return r;
}

static int attach_inputs(const struct jail_root *root, int root_fd, struct err *err)
{
	auto_close int dir = new_tmpfs(65536 + root->n_inputs * 1024ul, "755",
				       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	int r = dir < 0 ? dir : mounts_attach(dir, root_fd, "workspace/input", err);

	for (unsigned i = 0; r == 0 && i < root->n_inputs; i++) {
		const char *name = root->inputs[i].name;
		auto_close int file =
			openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
		if (file < 0)
			return err_errno(err, errno, "make the input '%s'", name);
		r = mounts_attach(root->inputs[i].fd, dir, name, err);
	}
	return r < 0 ? r : mounts_restrict(dir, MOUNT_ATTR_RDONLY, err);
}

static int make_dir(int workspace, const char *name, struct err *err)
{
	if (mkdirat(workspace, name, 0755) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '/workspace/%s'", name);
	return 0;
}

static int attach_workspace(const struct jail_root *root, int root_fd, struct err *err)
{
	int r = 0;

	if (root->workspace_fd >= 0) {
		r = mounts_attach(root->workspace_fd, root_fd, "workspace", err);
		if (r == 0 && root->scratch && root->n_inputs)
			r = make_dir(root->workspace_fd, "input", err);
	}
	return r < 0 || !root->n_inputs ? r : attach_inputs(root, root_fd, err);
}

static int attach_trees(const struct jail_root *root, int root_fd, struct err *err)
{
	for (unsigned i = 0; i < root->n_trees; i++) {
		const struct jail_tree *tree = &root->trees[i];
		const char *over = tree->over[0] ? tree->over : "/e";
		auto_close int fd = mounts_overlay(over, tree->lower, err);
		int r = fd < 0 ? fd : mounts_attach(fd, root_fd, tree->target, err);
		if (r < 0)
			return err_while(err, "show '%s'", tree->target);
	}
	return 0;
}

int jailroot_enter(const struct jail_root *root, struct err *err)
{
	auto_close int root_fd = mounts_overlay(root->upper, root->lower, err);
	int r = root_fd < 0 ? root_fd : mounts_attach(root_fd, AT_FDCWD, NEW_ROOT, err);

	if (r == 0)
		r = attach_trees(root, root_fd, err);
	if (r == 0)
		r = attach_proc(root, root_fd, err);
	if (r == 0)
		r = attach_dev(root, root_fd, err);
	if (r < 0)
		return r;
	auto_close int tmp = new_tmpfs(root->limits->tmp_bytes, "1777",
				       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	r = tmp < 0 ? tmp : mounts_attach(tmp, root_fd, "tmp", err);
	if (r == 0)
		r = attach_workspace(root, root_fd, err);
	return r < 0 ? r : mounts_pivot(root_fd, err);
}

static void expect(struct jail_mount *mounts, unsigned *n, bool read_only, bool has_devices,
		   const char *a, const char *b)
{
	struct jail_mount *mount = &mounts[(*n)++];

	snprintf(mount->point, sizeof(mount->point), "%s%s", a, b);
	mount->read_only = read_only;
	mount->devices = has_devices;
}

unsigned jailroot_expect(const struct jail_root *root,
			 struct jail_mount ret_mounts[JAIL_MOUNTS_MAX])
{
	unsigned n = 0;

	expect(ret_mounts, &n, true, false, "/", "");
	for (unsigned i = 0; i < root->n_trees; i++)
		expect(ret_mounts, &n, true, false, root->trees[i].target, "");
	expect(ret_mounts, &n, false, false, "/proc", "");
	for (int i = 0; !root->bare && i < root->n_masks; i++)
		expect(ret_mounts, &n, true, false, "/proc/", root->masks[i].name);
	expect(ret_mounts, &n, !root->bare, root->dev_fd >= 0, "/dev", "");
	for (size_t i = 0; root->dev_fd < 0 && i < ARRAY_LEN(devices); i++)
		expect(ret_mounts, &n, false, true, "/dev/", devices[i].name);
	expect(ret_mounts, &n, false, true, "/dev/pts", "");
	expect(ret_mounts, &n, false, false, "/dev/shm", "");
	expect(ret_mounts, &n, false, false, "/tmp", "");
	if (root->workspace_fd >= 0)
		expect(ret_mounts, &n, root->workspace_ro, false, "/workspace", "");
	if (root->n_inputs)
		expect(ret_mounts, &n, true, false, "/workspace/input", "");
	for (unsigned i = 0; i < root->n_inputs; i++)
		expect(ret_mounts, &n, true, false, "/workspace/input/", root->inputs[i].name);
	return n;
}
