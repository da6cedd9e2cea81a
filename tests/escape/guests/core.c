/* SPDX-License-Identifier: Apache-2.0
 *
 * D078: the attempts that must fail even when one layer of the jail is left out.  It does not
 * matter which of the others says no. */
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The arguments are paths that exist on the host. */
static void hostread(int argc, char **argv)
{
	const char *const always[] = { "/etc/shadow",
				       "/root/.ssh",
				       "/var/lib/dpkg/status",
				       "/proc/1/root/etc/shadow",
				       "/proc/1/cwd/etc/shadow",
				       "/proc/1/environ",
				       "/proc/1/mem",
				       "/.cay/../etc/shadow" };

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (open(always[i], O_RDONLY) != -1)
			fail("'%s' was opened", always[i]);
	for (int i = 0; i < argc; i++)
		if (open(argv[i], O_RDONLY) != -1)
			fail("'%s' was opened", argv[i]);
}

static void remount(int argc, char **argv)
{
	static char before[65536];
	/* Clears MOUNT_ATTR_RDONLY. */
	uint64_t writable[4] = { 0, 1, 0, 0 };

	(void)argc;
	(void)argv;
	snprintf(before, sizeof(before), "%s", read_whole("/proc/self/mountinfo"));
	FAILED(syscall(SYS_mount, "none", "/", NULL, 32UL, NULL));
	FAILED(syscall(SYS_mount, "none", "/usr", NULL, 32UL | 4096UL, NULL));
	FAILED(syscall(SYS_mount, "t", "/tmp", "tmpfs", 0UL, NULL));
	FAILED(syscall(SYS_mount, "/proc", "/tmp", NULL, 4096UL, NULL));
	FAILED(syscall(SYS_umount2, "/proc", 2));
	FAILED(syscall(SYS_fsopen, "tmpfs", 0));
	FAILED(syscall(SYS_open_tree, AT_FDCWD, "/", 1));
	FAILED(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, writable, sizeof(writable)));
	FAILED(syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, writable, sizeof(writable)));
	FAILED(syscall(SYS_chroot, "/tmp"));
	FAILED(syscall(SYS_pivot_root, "/tmp", "/tmp"));
	FAILED(open("/usr/bin/planted", O_WRONLY | O_CREAT, 0700));
	FAILED(open("/etc/planted", O_WRONLY | O_CREAT, 0700));
	if (strcmp(before, read_whole("/proc/self/mountinfo")) != 0)
		fail("the mounts have changed");
}

static void trace(int argc, char **argv)
{
	char byte = 0;
	struct iovec local = { &byte, 1 }, remote = { (void *)0x400000, 1 };

	(void)argc;
	(void)argv;
	FAILED(syscall(SYS_ptrace, PTRACE_ATTACH, 1, 0, 0));
	FAILED(syscall(SYS_ptrace, PTRACE_SEIZE, 1, 0, 0));
	FAILED(syscall(SYS_process_vm_readv, 1, &local, 1, &remote, 1, 0));
	FAILED(syscall(SYS_process_vm_writev, 1, &local, 1, &remote, 1, 0));
	FAILED(open("/proc/1/mem", O_RDWR));
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	for (int fd = 0; fd < 8; fd++)
		FAILED(syscall(SYS_pidfd_getfd, pidfd, fd, 0));
	for (pid_t pid = 2; pid < 32768; pid++)
		if (pid != getpid() && kill(pid, 0) == 0)
			fail("process %d can be signalled", pid);
}

/* Without the filter a family may exist; it must not reach beyond the sandbox's own network. */
static void families(int argc, char **argv)
{
	struct {
		unsigned short family, reserved;
		unsigned port, cid;
		unsigned char rest[4];
	} host = { 40 /* AF_VSOCK */, 0, 22, 2, { 0 } };
	int fd = socket(40, SOCK_STREAM, 0);

	(void)argc;
	(void)argv;
	if (fd >= 0)
		FAILED(connect(fd, (struct sockaddr *)&host, sizeof(host)));
	FAILED(socket(17 /* AF_PACKET */, SOCK_RAW, 768));
	FAILED(socket(AF_INET, SOCK_RAW, 255));
	FAILED(socket(AF_INET, 10, 768));
}

static void cgroupfs(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	FAILED(syscall(SYS_mount, "cgroup", "/tmp", "cgroup", 0UL, "memory"));
	FAILED(syscall(SYS_mount, "cgroup2", "/tmp", "cgroup2", 0UL, NULL));
	FAILED(open("/sys/fs/cgroup", O_RDONLY));
	FAILED(open("/proc/1/root/sys/fs/cgroup", O_RDONLY));
	for (int fd = 3; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			fail("descriptor %d is open", fd);
}

const struct probe core_probes[] = {
	{ "core-hostread", hostread, false }, { "core-remount", remount, false },
	{ "core-ptrace", trace, false },      { "core-families", families, false },
	{ "core-cgroupfs", cgroupfs, false }, { NULL, NULL, false },
};
