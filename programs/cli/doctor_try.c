/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_try.c - children of `cay doctor`: each is bounded in time and takes all it made with it.
 *
 * A trial lives in namespaces of its own; when it ends, so do they and every mount in them.  It is
 * killed with its parent, too. */
#include "doctor.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_for(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static _Noreturn void be_trial(int report, trial_fn fn, void *arg)
{
	struct err said = { 0 };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)alarm(DOCTOR_TRIAL_MS / 1000 + 1);
	int r = fn(arg, &said);
	if (r == 0)
		said.errnum = 0;
	else if (said.errnum == 0)
		err_errno(&said, -r, "try");
	(void)fd_write_all(report, &said, sizeof(said));
	_exit(0);
}

static int hear(int report, struct err *err)
{
	struct err said;
	int r = fd_wait_readable(report, DOCTOR_TRIAL_MS);

	if (r == 0)
		return err_make(err, ERR_TIMEOUT, "no answer after %d s", DOCTOR_TRIAL_MS / 1000);
	if (r < 0)
		return err_errno(err, -r, "wait for a child");
	if (fd_read_exact(report, &said, sizeof(said)) != sizeof(said))
		return err_make(err, ERR_UNSUPPORTED, "the child was killed");
	if (said.errnum == 0)
		return 0;
	err_sanitize(&said);
	*err = said;
	return -err->errnum;
}

int doctor_try(uint64_t clone_flags, trial_fn fn, void *arg, struct err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(err, errno, "pipe");
	auto_close int report = ends[0];
	auto_close int child_end = ends[1];

	fflush(NULL);
	struct sys_clone_args args = { .flags = clone_flags, .exit_signal = SIGCHLD };
	pid_t pid = sys_clone3(&args);
	if (pid < 0)
		return err_errno(err, errno, "clone");
	if (pid == 0)
		be_trial(child_end, fn, arg);

	drop_fd(&child_end);
	int r = hear(report, err);
	(void)kill(pid, SIGKILL);
	wait_for(pid);
	return r;
}

static int write_proc_self(const char *name, const char *text, struct err *err)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/%s", name);
	int r = fd_write_text_at(AT_FDCWD, path, text);
	return r < 0 ? err_errno(err, -r, "write '%s'", path) : 0;
}

int doctor_become_root(uid_t uid, gid_t gid, struct err *err)
{
	char uids[64], gids[64];

	(void)snprintf(uids, sizeof(uids), "0 %u 1", (unsigned)uid);
	(void)snprintf(gids, sizeof(gids), "0 %u 1", (unsigned)gid);
	int r = write_proc_self("uid_map", uids, err);
	if (r == 0)
		r = write_proc_self("setgroups", "deny", err);
	if (r == 0)
		r = write_proc_self("gid_map", gids, err);
	return r;
}

static _Noreturn void be_program(char *const argv[], int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setpgid(0, 0);
	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
		_exit(126);
	(void)execv(argv[0], argv);
	_exit(127);
}

/* Reads to the end, but keeps only what fits.  0, or -ETIMEDOUT. */
static int drain(int fd, int64_t deadline_ms, char *ret_text, size_t size)
{
	size_t have = 0;
	char piece[512];

	for (;;) {
		int64_t left = deadline_ms - clock_mono_ms();
		if (left <= 0 || fd_wait_readable(fd, (int)left) == 0)
			return -ETIMEDOUT;
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		size_t keep = (size_t)n < size - 1 - have ? (size_t)n : size - 1 - have;
		memcpy(ret_text + have, piece, keep);
		have += keep;
		ret_text[have] = '\0';
	}
	return 0;
}

/* It may have closed its output and still be there: look for its end until the deadline. */
static int wait_until(pid_t pid, int64_t deadline_ms, int *ret_status)
{
	for (;;) {
		pid_t got = waitpid(pid, ret_status, WNOHANG);
		if (got == pid)
			return 0;
		if ((got < 0 && errno != EINTR) || clock_mono_ms() >= deadline_ms)
			return -ETIMEDOUT;
		(void)poll(NULL, 0, 5);
	}
}

int doctor_run(char *const argv[], char *ret_line, size_t size)
{
	int ends[2];

	ret_line[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	auto_close int from = ends[0];
	auto_close int child_end = ends[1];
	int64_t deadline_ms = clock_mono_ms() + DOCTOR_TRIAL_MS;

	fflush(NULL);
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		be_program(argv, child_end);
	drop_fd(&child_end);
	(void)setpgid(pid, pid);

	int status = 0;
	int r = drain(from, deadline_ms, ret_line, size);
	if (r == 0)
		r = wait_until(pid, deadline_ms, &status);
	if (r < 0) {
		(void)kill(-pid, SIGKILL);
		wait_for(pid);
		return r;
	}
	ret_line[strcspn(ret_line, "\n")] = '\0';
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}
