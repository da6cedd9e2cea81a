/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PATIENCE_MS 20000

int launcher_start(struct launcher *launcher, const struct ids *ids, struct err *err)
{
	struct sys_clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID,
		.exit_signal = SIGCHLD,
	};
	int pair[2];

	*launcher = (struct launcher){ .sock = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, errno, "make a socket for the launcher");
	pid_t pid = sys_clone3(&args);
	if (pid == 0) {
		close(pair[0]);
		launcher_main(pair[1], ids);
	}
	int errnum = errno;
	close(pair[1]);
	launcher->sock = pair[0];
	if (pid < 0) {
		drop_fd(&launcher->sock);
		return err_errno(err, errnum, "make the outer user namespace");
	}
	launcher->pid = pid;
	int r = ids_map_outer(ids, pid, err);
	if (r == 0 && fd_send(launcher->sock, "g", 1, NULL, 0) < 0)
		r = err_make(err, ERR_SETUP, "the launcher went away");
	if (r < 0)
		launcher_stop(launcher);
	return r;
}

static void note_end(struct launcher *launcher, const struct launcher_reply *reply)
{
	if (reply->slot < LAUNCHER_SLOTS)
		launcher->ended[reply->slot / 8] |= (uint8_t)(1u << reply->slot % 8);
}

bool launcher_has_ended(const struct launcher *launcher, uint32_t slot)
{
	return launcher->pid == 0 || (launcher->ended[slot / 8] & 1u << slot % 8);
}

void launcher_forget(struct launcher *launcher, uint32_t slot)
{
	launcher->ended[slot / 8] &= (uint8_t) ~(1u << slot % 8);
}

/* Reads one message.  1: an answer, 0: news of an end. */
static int take(struct launcher *launcher, struct launcher_reply *ret_reply, int *ret_fd,
		struct err *err)
{
	size_t n_fds = 0;
	int fd = -1;
	ssize_t n = fd_recv(launcher->sock, ret_reply, sizeof(*ret_reply), &fd, 1, &n_fds);

	if (n <= 0)
		return err_errno(err, n < 0 ? (int)-n : EPIPE, "hear from the launcher");
	if ((size_t)n != sizeof(*ret_reply)) {
		if (n_fds)
			close(fd);
		return err_make(err, ERR_PROTOCOL, "the launcher sent %zd bytes", n);
	}
	if (ret_reply->ended) {
		if (n_fds)
			close(fd);
		note_end(launcher, ret_reply);
		return 0;
	}
	if (ret_fd)
		*ret_fd = n_fds ? fd : -1;
	else if (n_fds)
		close(fd);
	return 1;
}

int launcher_ask(struct launcher *launcher, const struct plan *plan, size_t len, const int *fds,
		 size_t n_fds, struct launcher_reply *ret_reply, int *ret_fd, struct err *err)
{
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	int r = fd_send(launcher->sock, plan, len, fds, n_fds);

	if (r < 0)
		return err_errno(err, -r, "ask the launcher");
	for (;;) {
		int64_t left = until - clock_mono_ms();
		if (left <= 0 || fd_wait_readable(launcher->sock, (int)left) <= 0)
			return err_make(err, ERR_TIMEOUT, "the launcher did not answer");
		r = take(launcher, ret_reply, ret_fd, err);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		/* The answer to an ask that we gave up on is not ours. */
		if (!ret_reply->failed &&
		    (ret_reply->ask != plan->ask || ret_reply->slot != plan->slot)) {
			if (ret_fd)
				drop_fd(ret_fd);
			continue;
		}
		if (ret_reply->failed) {
			err_sanitize(&ret_reply->err);
			*err = ret_reply->err;
			return -err->errnum;
		}
		return 0;
	}
}

int launcher_listen(struct launcher *launcher, struct err *err)
{
	struct launcher_reply reply;

	while (launcher->pid && fd_wait_readable(launcher->sock, 0) > 0) {
		int r = take(launcher, &reply, NULL, err);
		if (r < 0) {
			launcher_stop(launcher);
			return r;
		}
	}
	return 0;
}

void launcher_stop(struct launcher *launcher)
{
	if (!launcher->pid)
		return;
	drop_fd(&launcher->sock);
	(void)kill(launcher->pid, SIGKILL);
	while (waitpid(launcher->pid, NULL, 0) < 0 && errno == EINTR)
		;
	launcher->pid = 0;
}
