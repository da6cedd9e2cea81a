/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace.h"

#include "mounts.h"
#include "quota.h"
#include "runs.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define INODE_BYTES 256
#define BLOCK 4096

/* Inode tables and bitmaps come on top, so that the user gets what was promised. */
static uint64_t image_size(const struct limits *limits)
{
	uint64_t size = limits->disk_bytes + limits->disk_files * INODE_BYTES;

	size += size / 128 + (2u << 20);
	return (size + BLOCK - 1) / BLOCK * BLOCK;
}

static int run_mkfs(const char *path, uint64_t files, struct err *err)
{
	static const char *const places[] = { "/sbin/mke2fs", "/usr/sbin/mke2fs" };
	char inodes[32];
	char *argv[] = { "mke2fs",
			 "-q",
			 "-F",
			 "-t",
			 "ext4",
			 "-b",
			 "4096",
			 "-m",
			 "0",
			 "-O",
			 "^has_journal,^resize_inode,^metadata_csum,uninit_bg",
			 "-E",
			 "lazy_itable_init=1,nodiscard",
			 "-I",
			 "256",
			 "-N",
			 inodes,
			 (char *)path,
			 NULL };
	char *envp[] = { "PATH=/usr/sbin:/sbin:/usr/bin:/bin", "MKE2FS_SKIP_PROGRESS=1", NULL };
	int status = -1;

	snprintf(inodes, sizeof(inodes), "%" PRIu64, files + 16);
	pid_t pid = vfork();
	if (pid == 0) {
		for (size_t i = 0; i < ARRAY_LEN(places); i++)
			execve(places[i], argv, envp);
		_exit(127);
	}
	if (pid < 0)
		return err_errno(err, errno, "start mke2fs");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0)
		return err_make(err, ERR_UNSUPPORTED, "mke2fs could not make a file system");
	return 0;
}

static uint64_t little(const uint8_t *at)
{
	return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
	       (uint64_t)at[3] << 24;
}

/* Blocks of an empty file system that its user could not have, or has beyond the promise: the
 * kernel keeps a fiftieth, at most 4096 blocks, for itself. */
static int64_t blocks_beyond(int image, uint64_t promised)
{
	uint8_t super[1024];

	if (pread(image, super, sizeof(super), 1024) != (ssize_t)sizeof(super))
		return 0;
	uint64_t blocks = little(super + 4), free_blocks = little(super + 12);
	uint64_t kept = blocks / 50 < 4096 ? blocks / 50 : 4096;
	return (int64_t)(free_blocks - kept) - (int64_t)((promised + BLOCK - 1) / BLOCK);
}

/* Makes the file system and cuts the file until what is left is what was promised. */
static int make_filesystem(int image, const char *path, const struct limits *limits,
			   struct err *err)
{
	uint64_t size = image_size(limits);

	for (int tries = 0; tries < 4; tries++) {
		if (ftruncate(image, 0) < 0 || ftruncate(image, (off_t)size) < 0)
			return err_errno(err, errno, "make '%s'", path);
		int r = run_mkfs(path, limits->disk_files, err);
		if (r < 0)
			return r;
		int64_t beyond = blocks_beyond(image, limits->disk_bytes);
		if (beyond == 0)
			break;
		size -= (uint64_t)(beyond * BLOCK);
	}
	return 0;
}

/* An empty file system of that size, made once: the sparse copy of it costs a tenth of mke2fs. */
static int open_template(const char *state_dir, const struct limits *limits, struct err *err)
{
	char path[1200], temp[1300];

	snprintf(path, sizeof(path), "%.1024s/pool", state_dir);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", path);
	snprintf(path, sizeof(path), "%.1024s/pool/ext4-%" PRIu64 "-%" PRIu64, state_dir,
		 limits->disk_bytes, limits->disk_files);
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	snprintf(temp, sizeof(temp), "%s.%d", path, getpid());
	auto_close int out = open(temp, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return err_errno(err, errno, "make '%s'", temp);
	int r = make_filesystem(out, temp, limits, err);
	if (r == 0 && rename(temp, path) < 0)
		r = err_errno(err, errno, "put '%s' in place", path);
	if (r < 0) {
		(void)unlink(temp);
		return r;
	}
	return take_fd(&out);
}

/* Only what is not a hole. */
static int copy_sparse(int in, int out, struct err *err)
{
	struct stat st;

	if (fstat(in, &st) < 0 || ftruncate(out, st.st_size) < 0)
		return err_errno(err, errno, "size the workspace");
	for (off_t at = 0; (at = lseek(in, at, SEEK_DATA)) >= 0;) {
		off_t end = lseek(in, at, SEEK_HOLE);
		if (end < 0)
			return err_errno(err, errno, "read the empty file system");
		while (at < end) {
			loff_t from = at, to = at;
			ssize_t n = copy_file_range(in, &from, out, &to, (size_t)(end - at), 0);
			if (n <= 0)
				return err_errno(err, n < 0 ? errno : EIO, "fill the workspace");
			at += n;
		}
	}
	return errno == ENXIO ? 0 : err_errno(err, errno, "read the empty file system");
}

/* A loop device that clears itself.  Somebody else may take the free one before us. */
static int attach_loop(int image, char *ret_path, size_t size, struct err *err)
{
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	if (control < 0)
		return err_errno(err, errno, "open /dev/loop-control");
	for (int tries = 0; tries < 64; tries++) {
		struct loop_config config = {
			.fd = (uint32_t)image,
			.block_size = BLOCK,
			.info.lo_flags = LO_FLAGS_AUTOCLEAR,
		};
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		if (number < 0)
			return err_errno(err, errno, "find a free loop device");
		snprintf(ret_path, size, "/dev/loop%d", number);
		auto_close int loop = open(ret_path, O_RDWR | O_CLOEXEC);
		if (loop < 0)
			return err_errno(err, errno, "open '%s'", ret_path);
		if (ioctl(loop, LOOP_CONFIGURE, &config) == 0)
			return take_fd(&loop);
		if (errno != EBUSY)
			return err_errno(err, errno, "set up '%s'", ret_path);
	}
	return err_make(err, ERR_LIMIT, "every free loop device was taken by somebody else");
}

static int make_loop(struct workspace *workspace, const struct run *run, const char *state_dir,
		     const struct limits *limits, struct err *err)
{
	char device[32];
	/* It ends with the run: nothing in it has to be on the disk before anything else, and the
	 * inode tables are zeros already, being holes of a fresh file. */
	struct mount_option options[] = {
		{ "source", device }, { "nobarrier", NULL }, { "noinit_itable", NULL }, { 0 }
	};
	auto_close int blank = open_template(state_dir, limits, err);
	if (blank < 0)
		return blank;
	auto_close int image = openat(run->dir_fd, "workspace.img",
				      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (image < 0)
		return err_errno(err, errno, "make the workspace's file");
	int r = copy_sparse(blank, image, err);
	if (r < 0)
		return r;
	auto_close int loop = attach_loop(image, device, sizeof(device), err);
	if (loop < 0)
		return loop;
	workspace->mount_fd = mounts_new(
		"ext4", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME, err);
	if (workspace->mount_fd < 0)
		return workspace->mount_fd;
	workspace->by = BY_LOOP_FILE;
	struct stat st;
	if (fstat(loop, &st) == 0)
		workspace->loop = st.st_rdev;
	return 0;
}

static int give_to(int dir, uid_t uid, gid_t gid, struct err *err)
{
	(void)unlinkat(dir, "lost+found", AT_REMOVEDIR); /* only a fresh ext4 has one */
	if ((mkdirat(dir, "output", 0755) < 0 && errno != EEXIST) ||
	    fchmodat(dir, "output", 0755, 0) < 0 ||
	    fchownat(dir, "output", uid, gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchownat(dir, "", uid, gid, AT_EMPTY_PATH) < 0)
		return err_errno(err, errno, "give the workspace to the sandbox");
	return 0;
}

static int make_directory(struct workspace *workspace, const struct run *run, bool as_root,
			  struct err *err)
{
	if ((size_t)snprintf(workspace->path, sizeof(workspace->path), "%s/workspace", run->path) >=
	    sizeof(workspace->path))
		return err_make(err, ERR_INVALID, "the path of the state directory is too long");
	if (mkdirat(run->dir_fd, "workspace", 0755) < 0)
		return err_errno(err, errno, "make '%s'", workspace->path);
	workspace->by = BY_WATCHER;
	if (!as_root)
		return 0;
	workspace->mount_fd =
		mounts_clone(run->dir_fd, "workspace", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	return workspace->mount_fd < 0 ? workspace->mount_fd : 0;
}

/* The first uid of a slot is nobody else's number, and so good for a project too. */
static int make_quota(struct workspace *workspace, const struct run *run, uid_t uid,
		      struct err *err)
{
	int r = make_directory(workspace, run, true, err);

	if (r < 0)
		return r;
	workspace->project = uid;
	workspace->quota_fd =
		openat(run->dir_fd, "workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = workspace->quota_fd < 0
		    ? err_errno(err, errno, "open the workspace")
		    : quota_start(workspace->quota_fd, uid, &workspace->limits, err);
	if (r == 0) {
		workspace->by = BY_PROJECT_QUOTA;
		return 0;
	}
	drop_fd(&workspace->quota_fd);
	drop_fd(&workspace->mount_fd);
	(void)unlinkat(run->dir_fd, "workspace", AT_REMOVEDIR);
	return r;
}

int workspace_create(struct workspace *workspace, const struct run *run, const char *state_dir,
		     const struct limits *limits, bool as_root, uid_t uid, gid_t gid,
		     struct err *err)
{
	struct err why;
	struct stat st;
	struct statfs fs;
	int r = -1;

	*workspace = (struct workspace){ .mount_fd = -1, .quota_fd = -1, .limits = *limits };
	if (fstat(run->dir_fd, &st) == 0)
		workspace->device = st.st_dev;
	if (as_root && quota_is_kept(run->dir_fd))
		r = make_quota(workspace, run, uid, &why);
	/* No loop device, no mke2fs: a directory will do, and the receipt says so. */
	if (as_root && r < 0)
		r = make_loop(workspace, run, state_dir, limits, &why);
	if (r < 0)
		r = make_directory(workspace, run, as_root, err);
	if (r == 0 && as_root)
		r = give_to(workspace->mount_fd, uid, gid, err);
	if (r == 0 && workspace->by == BY_LOOP_FILE && fstatfs(workspace->mount_fd, &fs) == 0) {
		workspace->start_bytes =
			(uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
		workspace->start_files = (uint64_t)(fs.f_files - fs.f_ffree);
	}
	return r;
}

/* A user namespace whose only use is its map: id on disk -> id on the host. */
static int make_idmap(uid_t disk_uid, gid_t disk_gid, uid_t uid, gid_t gid, struct err *err)
{
	struct sys_clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	char path[64], text[64];
	int fd = -1;

	pid_t pid = sys_clone3(&args);
	if (pid == 0)
		for (;;)
			pause();
	if (pid < 0)
		return err_errno(err, errno, "make a user namespace for the workspace");
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	snprintf(text, sizeof(text), "%u %u 1\n", disk_uid, uid);
	int r = fd_write_text_at(AT_FDCWD, path, text);
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	snprintf(text, sizeof(text), "%u %u 1\n", disk_gid, gid);
	if (r == 0)
		r = fd_write_text_at(AT_FDCWD, path, text);
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	if (r == 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r == 0 && fd < 0)
		r = -errno;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return r < 0 ? err_errno(err, -r, "map the owner of the workspace") : fd;
}

int workspace_show(const char *path, bool read_only, uid_t uid, gid_t gid, struct err *err)
{
	unsigned attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (read_only ? MOUNT_ATTR_RDONLY : 0);
	struct stat st;

	auto_close int fd = mounts_clone(AT_FDCWD, path, attrs, err);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_make(err, ERR_INVALID, "the workspace '%s' is not a directory", path);
	auto_close int map = make_idmap(st.st_uid, st.st_gid, uid, gid, err);
	if (map < 0)
		return map;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)map };
	if (sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
		return err_errno(err, errno,
				 "map the owner of '%s' (its file system must allow that)", path);
	return take_fd(&fd);
}

/* A large write fails as a whole while there is still room for a small one: the kernel takes pages
 * of up to 2 MiB at a time. */
static uint64_t too_little(uint64_t limit_bytes)
{
	uint64_t quarter = limit_bytes / 4;

	return quarter < (2u << 20) ? quarter : 2u << 20;
}

void workspace_usage(const struct workspace *workspace, struct usage *usage)
{
	struct statfs fs;

	if (workspace->by == BY_PROJECT_QUOTA)
		quota_usage(workspace->quota_fd, workspace->project, &workspace->limits, usage);
	if (workspace->by != BY_LOOP_FILE || fstatfs(workspace->mount_fd, &fs) < 0)
		return;
	uint64_t used = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
	usage->disk_bytes = used > workspace->start_bytes ? used - workspace->start_bytes : 0;
	usage->disk_files = (uint64_t)(fs.f_files - fs.f_ffree) - workspace->start_files;
	if (usage->disk_bytes + too_little(workspace->limits.disk_bytes) >=
		    workspace->limits.disk_bytes ||
	    fs.f_ffree == 0)
		usage->disk_full = 1;
}

void workspace_destroy(struct workspace *workspace)
{
	if (workspace->quota_fd >= 0)
		quota_stop(workspace->quota_fd, workspace->project);
	drop_fd(&workspace->quota_fd);
	drop_fd(&workspace->mount_fd);
}
