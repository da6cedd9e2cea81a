/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int fd_write_all(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		/* send() spares us SIGPIPE; not every descriptor is a socket. */
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
		if (n < 0 && errno == ENOTSOCK)
			n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = { .fd = fd, .events = POLLOUT };
			(void)poll(&p, 1, -1);
			continue;
		}
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t fd_read_exact(int fd, void *data, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = read(fd, (char *)data + have, len - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			(void)fd_wait_readable(fd, -1);
			continue;
		}
		if (n < 0)
			return -errno;
		if (n == 0)
			return have == 0 ? 0 : -EPIPE;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

ssize_t fd_read_text(int fd, char *data, size_t size)
{
	size_t have = 0;

	for (;;) {
		if (have == size)
			return -EFBIG;
		ssize_t n = read(fd, data + have, size - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	data[have] = '\0';
	return (ssize_t)have;
}

ssize_t fd_read_text_at(int dirfd, const char *path, char *data, size_t size)
{
	auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	return fd_read_text(fd, data, size);
}

int fd_write_text_at(int dirfd, const char *path, const char *text)
{
	auto_close int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, strlen(text));
	if (n < 0)
		return -errno;
	return (size_t)n == strlen(text) ? 0 : -EIO;
}

int fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n_fds > FD_PASS_MAX)
		return -E2BIG;
	if (n_fds > 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	for (;;) {
		ssize_t n = sendmsg(sock, &msg, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		return (size_t)n == len ? 0 : -EMSGSIZE;
	}
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

ssize_t fd_recv(int sock, void *data, size_t size, int *fds, size_t max_fds, size_t *ret_n_fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	int got[FD_PASS_MAX];
	size_t n_got = 0;
	ssize_t n;

	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (count > FD_PASS_MAX - n_got)
			count = FD_PASS_MAX - n_got;
		memcpy(got + n_got, CMSG_DATA(c), count * sizeof(int));
		n_got += count;
	}
	bool is_cut = (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || n_got > max_fds;
	/* An empty packet looks like the end: who sees one does not look for descriptors. */
	if (is_cut || n == 0) {
		close_all(got, n_got);
		n_got = 0;
	}
	if (is_cut)
		return -EMSGSIZE;
	if (n_got > 0)
		memcpy(fds, got, n_got * sizeof(int));
	if (ret_n_fds)
		*ret_n_fds = n_got;
	return n;
}

int fd_wait_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (;;) {
		int r = poll(&p, 1, timeout_ms);
		if (r < 0 && errno == EINTR)
			continue;
		return r < 0 ? -errno : r;
	}
}

int fd_set_nonblocking(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_set_cloexec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}
