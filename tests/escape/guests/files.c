/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading, changing and re-mounting what is not the guest's. */
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The arguments are paths that exist on the host. */
static void read_host(int argc, char **argv)
{
	const char *const always[] = { "/etc/shadow", "/etc/sudoers", "/etc/ssh", "/root",
				       "/root/.ssh",  "/var/lib",     "/var/log", "/run/systemd",
				       "/sys",        "/sys/kernel",  "/boot" };

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (open(always[i], O_RDONLY) != -1 || errno != ENOENT)
			fail("open '%s': %s", always[i], strerror(errno));
	for (int i = 0; i < argc; i++)
		if (open(argv[i], O_RDONLY) != -1 || (errno != ENOENT && errno != ENOTDIR))
			fail("open '%s': %s", argv[i], strerror(errno));
}

static void write_below(const char *dir)
{
	char path[256];
	struct stat st;

	if (lstat(dir, &st) < 0)
		return;
	snprintf(path, sizeof(path), "%s/planted", dir);
	REFUSED(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600), EROFS, EACCES);
	REFUSED(mkdir(path, 0700), EROFS, EACCES);
	REFUSED(symlink("/tmp", path), EROFS, EACCES);
	REFUSED(chmod(dir, 0777), EROFS, EPERM, EACCES);
}

static void change_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		fail("'%s' is not there: %s", path, strerror(errno));
		return;
	}
	REFUSED(open(path, O_WRONLY | O_APPEND), EROFS, EACCES);
	REFUSED(open(path, O_RDWR | O_TRUNC), EROFS, EACCES);
	REFUSED(truncate(path, 0), EROFS, EACCES);
	REFUSED(unlink(path), EROFS, EACCES);
	REFUSED(rename(path, "/usr/planted"), EROFS, EACCES, EXDEV);
	REFUSED(rename(path, "/tmp/planted"), EROFS, EACCES, EXDEV);
	REFUSED(chmod(path, 0777), EROFS, EPERM, EACCES);
	REFUSED(chown(path, 1000, 1000), EROFS, EPERM, EACCES);
	REFUSED(utimensat(AT_FDCWD, path, NULL, 0), EROFS, EPERM, EACCES);
}

static void write_system(int argc, char **argv)
{
	const char *const dirs[] = { "/",
				     "/usr",
				     "/usr/bin",
				     "/usr/lib",
				     "/etc",
				     "/lib",
				     "/bin",
				     "/opt",
				     "/dev",
				     "/dev/pts",
				     "/proc",
				     "/proc/1",
				     "/workspace/input",
				     "/.cay" };

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (strcmp(dirs[i], "/proc") == 0 || strcmp(dirs[i], "/proc/1") == 0)
			REFUSED(open("/proc/planted", O_WRONLY | O_CREAT, 0600), EROFS, EACCES,
				ENOENT);
		else
			write_below(dirs[i]);
	change_file("/usr/bin/env");
	change_file("/etc/passwd");
	change_file("/bin/sh");
}

static void remount(int argc, char **argv)
{
	static char before[65536];
	char attr[32] = { 0 };

	(void)argc;
	(void)argv;
	snprintf(before, sizeof(before), "%s", read_whole("/proc/self/mountinfo"));
	REFUSED(syscall(SYS_mount, "none", "/", NULL, 32UL /* remount */, NULL), EPERM);
	REFUSED(syscall(SYS_mount, "/proc", "/tmp", NULL, 4096UL /* bind */, NULL), EPERM);
	REFUSED(syscall(SYS_mount, "t", "/tmp", "tmpfs", 0UL, NULL), EPERM);
	REFUSED(syscall(SYS_mount, "p", "/tmp", "proc", 0UL, NULL), EPERM);
	REFUSED(syscall(SYS_umount2, "/proc", 2), EPERM);
	REFUSED(syscall(SYS_umount2, "/", 2), EPERM);
	REFUSED(syscall(SYS_fsopen, "tmpfs", 0), EPERM);
	REFUSED(syscall(SYS_fsconfig, 0, 6, NULL, NULL, 0), EPERM);
	REFUSED(syscall(SYS_fsmount, 0, 0, 0), EPERM);
	REFUSED(syscall(SYS_fspick, AT_FDCWD, "/", 0), EPERM);
	REFUSED(syscall(SYS_open_tree, AT_FDCWD, "/", 1), EPERM);
	REFUSED(syscall(467 /* open_tree_attr */, AT_FDCWD, "/", 1, NULL, 0), EPERM);
	REFUSED(syscall(SYS_move_mount, AT_FDCWD, "/tmp", AT_FDCWD, "/usr", 0), EPERM);
	REFUSED(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, attr, sizeof(attr)), EPERM);
	if (strcmp(before, read_whole("/proc/self/mountinfo")) != 0)
		fail("the mounts have changed");
}

static void leave_root(int argc, char **argv)
{
	struct stat root, up;

	(void)argc;
	(void)argv;
	REFUSED(chroot("/tmp"), EPERM);
	REFUSED(syscall(SYS_pivot_root, "/tmp", "/tmp"), EPERM);
	stat("/", &root);
	stat("/..", &up);
	if (root.st_ino != up.st_ino || root.st_dev != up.st_dev)
		fail("'/..' is not '/'");
	int fd = open("/", O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < 64 && fd >= 0; i++) {
		int next = openat(fd, "..", O_RDONLY | O_DIRECTORY);
		close(fd);
		fd = next;
	}
	if (fd < 0 || fstat(fd, &up) < 0 || root.st_ino != up.st_ino || root.st_dev != up.st_dev)
		fail("walking up leads out of '/'");
}

static void open_handles(int argc, char **argv)
{
	struct {
		unsigned bytes;
		int type;
		unsigned inode, generation;
	} handle = { 8, 1, 2, 0 };
	int mount_id;

	(void)argc;
	(void)argv;
	REFUSED(syscall(SYS_name_to_handle_at, AT_FDCWD, "/", &handle, &mount_id, 0), EPERM);
	for (handle.inode = 1; handle.inode < 64; handle.inode++) {
		handle.bytes = 8;
		REFUSED(syscall(SYS_open_by_handle_at, AT_FDCWD, &handle, O_RDONLY), EPERM);
	}
}

static void overwrite_programs(int argc, char **argv)
{
	const char *const paths[] = { "/proc/self/exe", "/proc/1/exe", "/proc/1/root/usr/bin/env",
				      "/proc/1/root/planted", "/proc/1/cwd/planted" };

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		REFUSED(open(paths[i], O_RDWR), EROFS, EACCES, ETXTBSY, ENOENT, EPERM);
		REFUSED(open(paths[i], O_WRONLY | O_CREAT | O_TRUNC, 0700), EROFS, EACCES, ETXTBSY,
			ENOENT, EPERM);
	}
}

static void inherited_descriptors(int argc, char **argv)
{
	DIR *dir = opendir("/proc/self/fd");

	(void)argc;
	(void)argv;
	if (!dir) {
		fail("open '/proc/self/fd': %s", strerror(errno));
		return;
	}
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		if (e->d_name[0] != '.' && atoi(e->d_name) > 2 && atoi(e->d_name) != dirfd(dir))
			fail("descriptor %s is open", e->d_name);
	closedir(dir);
}

static bool copy_self(const char *path)
{
	char buffer[65536];
	int in = open("/proc/self/exe", O_RDONLY),
	    out = open(path, O_WRONLY | O_CREAT | O_EXCL, 0755);
	ssize_t n = -1;

	while (in >= 0 && out >= 0 && (n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, (size_t)n) != n)
			return false;
	close(in);
	close(out);
	return n == 0;
}

static void run_setuid(int argc, char **argv)
{
	const char *const mounts[] = { "/", "/usr", "/workspace", "/tmp", "/dev/shm" };
	int status = -1;

	(void)argc;
	(void)argv;
	if (!copy_self("/workspace/setuid"))
		fail("copying failed: %s", strerror(errno));
	(void)chmod("/workspace/setuid", 06755);
	pid_t child = fork();
	if (child == 0) {
		execl("/workspace/setuid", "setuid", "ids", NULL);
		_exit(9);
	}
	waitpid(child, &status, 0);
	if (status != 0)
		fail("a set-uid copy ended with %#x", (unsigned)status);
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		struct statvfs fs;

		if (statvfs(mounts[i], &fs) < 0 || !(fs.f_flag & ST_NOSUID))
			fail("'%s' is mounted without nosuid", mounts[i]);
	}
}

/* Started by the probe above, from the set-uid file. */
static void check_ids(int argc, char **argv)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;

	(void)argc;
	(void)argv;
	getresuid(&r, &e, &s);
	getresgid(&rg, &eg, &sg);
	if (r != 1000 || e != 1000 || s != 1000 || rg != 1000 || eg != 1000 || sg != 1000)
		fail("ids are %u %u %u, %u %u %u", r, e, s, rg, eg, sg);
	if (getgroups(0, NULL) != 0)
		fail("there are other groups");
	REFUSED(setuid(0), EPERM, EINVAL);
	REFUSED(setgid(0), EPERM, EINVAL);
	REFUSED(setresuid(0, 0, 0), EPERM, EINVAL);
}

static void make_nodes(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	REFUSED(mknod("/workspace/n", S_IFCHR | 0600, makedev(1, 1)), EPERM);
	REFUSED(mknod("/tmp/n", S_IFBLK | 0600, makedev(254, 0)), EPERM);
	REFUSED(mknod("/dev/shm/n", S_IFCHR, makedev(0, 0)), EPERM);
	REFUSED(mknodat(AT_FDCWD, "/workspace/n", S_IFCHR, makedev(0, 0)), EPERM);
	WORKED(mkfifo("/workspace/fifo", 0600));
}

static void list_devices(int argc, char **argv)
{
	const char *const known[] = { "null", "zero", "full", "random", "urandom", "tty",   "ptmx",
				      "pts",  "shm",  "fd",   "stdin",  "stdout",  "stderr" };
	size_t n_known = sizeof(known) / sizeof(known[0]), seen = 0;
	DIR *dir = opendir("/dev");

	(void)argc;
	(void)argv;
	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		bool is_known = false;

		for (size_t i = 0; i < n_known; i++)
			is_known |= strcmp(e->d_name, known[i]) == 0;
		seen += is_known;
		if (!is_known && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			fail("'/dev/%s' is there", e->d_name);
	}
	if (seen != n_known)
		fail("%zu of %zu devices are there", seen, n_known);
}

static void replace_devices(int argc, char **argv)
{
	const char *const paths[] = { "/dev/null", "/dev/zero",   "/dev/ptmx",
				      "/dev/shm",  "/dev/pts",    "/dev/pts/ptmx",
				      "/dev/fd",   "/dev/stdout", "/dev" };
	struct stat st;

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		REFUSED(unlink(paths[i]), EROFS, EPERM, EACCES, EISDIR, EBUSY);
		REFUSED(rename(paths[i], "/dev/other"), EROFS, EPERM, EACCES, EBUSY, EXDEV);
		REFUSED(rename("/tmp", paths[i]), EROFS, EPERM, EACCES, EBUSY, EXDEV);
		REFUSED(symlink("/workspace", paths[i]), EEXIST, EROFS, EACCES);
	}
	if (stat("/dev/null", &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
		fail("'/dev/null' is not character device 1:3");
}

static void lease(int argc, char **argv)
{
	int fd = open("/workspace/lease", O_RDWR | O_CREAT, 0600);

	(void)argc;
	(void)argv;
	REFUSED(fcntl(fd, F_SETLEASE, F_WRLCK), EPERM, EINVAL);
	REFUSED(fcntl(fd, F_NOTIFY, 1), EPERM, EINVAL);
	REFUSED(fcntl(fd, F_SETSIG, 10), EPERM, EINVAL);
	REFUSED(syscall(SYS_fanotify_init, 0, 0), EPERM, EINVAL);
}

static void hard_links(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	REFUSED(link("/usr/bin/env", "/workspace/l"), EXDEV, EPERM, EROFS, EACCES);
	REFUSED(link("/etc/passwd", "/tmp/l"), EXDEV, EPERM, EROFS, EACCES);
	REFUSED(link("/workspace/input/guest", "/workspace/l"), EXDEV, EPERM, EROFS, EACCES);
	REFUSED(link("/proc/self/exe", "/workspace/l"), EXDEV, EPERM, EROFS, EACCES);
	REFUSED(linkat(AT_FDCWD, "/proc/self/exe", AT_FDCWD, "/workspace/l", AT_SYMLINK_FOLLOW),
		EXDEV, EPERM, EROFS, EACCES, ENOENT);
}

static void attributes(int argc, char **argv)
{
	static char big[65536];
	const char *path = "/workspace/output/attributes";
	/* cap_sys_admin, as setcap(8) would write it. */
	const struct vfs_cap_data caps = { .magic_etc = 0x02000001,
					   .data[0] = { .permitted = 1u << 21 } };

	(void)argc;
	(void)argv;
	close(open(path, O_WRONLY | O_CREAT, 0755));
	REFUSED(setxattr(path, "trusted.x", "1", 1, 0), EPERM, EOPNOTSUPP, EACCES);
	REFUSED(setxattr(path, "trusted.overlay.opaque", "y", 1, 0), EPERM, EOPNOTSUPP, EACCES);
	REFUSED(setxattr(path, "security.capability", &caps, sizeof(caps), 0), EPERM, EOPNOTSUPP);
	REFUSED(setxattr(path, "system.x", "x", 1, 0), EPERM, EOPNOTSUPP);
	/* Its own files' attributes are the guest's business; they must not come out, though. */
	(void)setxattr(path, "user.small", "x", 1, 0);
	(void)setxattr(path, "user.big", big, sizeof(big), 0);
}

static void canary(int argc, char **argv)
{
	struct stat st;

	(void)argc;
	(void)argv;
	WORKED(stat("/.cay/canary", &st));
	REFUSED(open("/.cay/canary", O_RDONLY), EACCES);
}

const struct probe file_probes[] = {
	{ "D001", read_host, HARMLESS },
	{ "D002", write_system, false },
	{ "D003", remount, false },
	{ "D005", leave_root, false },
	{ "D006", open_handles, HARMLESS },
	{ "D007", overwrite_programs, false },
	{ "D008", inherited_descriptors, HARMLESS },
	{ "D011", run_setuid, false },
	{ "ids", check_ids, HARMLESS },
	{ "D012", make_nodes, false },
	{ "D013", list_devices, HARMLESS },
	{ "D014", replace_devices, false },
	{ "D019", lease, false },
	{ "D021", hard_links, false },
	{ "D025", attributes, false },
	{ "D026", canary, HARMLESS },
	{ NULL, NULL, false },
};
