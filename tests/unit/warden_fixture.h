/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_fixture.h - what tests of the kernel's side need: a directory of their own, a process
 * that may lose its rights, namespaces in which mounts and root are ours.
 *
 * The leak checker of a sanitizer needs /proc when a test ends.  So what changes the root, the
 * limits or the rights of a process runs in_child. */
#pragma once

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/stat.h>

#define TMP_SIZE 32

static char tmp_path[TMP_SIZE];
__attribute__((unused)) static struct err err;

/* A fresh directory; it is gone after tmp_finish. */
static inline int tmp_make(void)
{
	snprintf(tmp_path, sizeof(tmp_path), "/tmp/cay-unit-XXXXXX");
	CHECK(mkdtemp(tmp_path) != NULL);
	int fd = open(tmp_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static inline void tmp_finish(void)
{
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(path_remove_tree(tmp, tmp_path + strlen("/tmp/")), 0);
	close(tmp);
	CHECK_INT(access(tmp_path, F_OK), -1);
}

static inline void make_file(int dir, const char *path, const char *text, mode_t mode)
{
	(void)unlinkat(dir, path, 0); /* it may be closed to us */
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	CHECK_INT(fchmod(fd, mode), 0);
	close(fd);
}

/* Runs it in a process that may lose everything; its failed check is ours, its skip too. */
static inline void in_child(void (*run)(void))
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		run();
		fflush(stdout);
		_exit(0);
	}
	int status = -1;
	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status))
		_exit(WEXITSTATUS(status));
	CHECK_INT(status, 0);
}

static inline void write_map(const char *path, unsigned id)
{
	char text[32];

	snprintf(text, sizeof(text), "0 %u 1\n", id);
	CHECK_INT(fd_write_text_at(AT_FDCWD, path, text), 0);
}

/* A user and a mount namespace of our own, in which we are root; nothing leaves them. */
static inline void enter_namespaces(int more)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | more) < 0)
		SKIP("no user namespaces here");
	CHECK_INT(fd_write_text_at(AT_FDCWD, "/proc/self/setgroups", "deny"), 0);
	write_map("/proc/self/uid_map", uid);
	write_map("/proc/self/gid_map", gid);
	CHECK_INT(sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
}

static inline bool is_root(void)
{
	return geteuid() == 0;
}
