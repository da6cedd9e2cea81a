/* SPDX-License-Identifier: Apache-2.0
 *
 * fd.h - whole reads and writes, and descriptors passed between our processes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define FD_PASS_MAX 64

/* All of it, or -errno.  A peer that is gone is -EPIPE, never a signal. */
int fd_write_all(int fd, const void *data, size_t len);

/* Reads exactly len bytes.  Returns len, 0 at a clean end before the first byte, -EPIPE at an
 * end in the middle, or -errno. */
ssize_t fd_read_exact(int fd, void *data, size_t len);

/* Reads to the end of file but at most size - 1 bytes, and ends them with NUL.  Returns the
 * length, or -errno; -EFBIG when there is more. */
ssize_t fd_read_text(int fd, char *data, size_t size);
ssize_t fd_read_text_at(int dirfd, const char *path, char *data, size_t size);

/* Writes a short string to an existing file in one write(2), as /proc and cgroups want. */
int fd_write_text_at(int dirfd, const char *path, const char *text);

/* One packet with descriptors over a unix socket.  Sent descriptors stay the caller's. */
int fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds);

/* Receives one packet and at most max_fds descriptors, all CLOEXEC.  Returns the length, 0 at
 * the end, -errno otherwise; a packet or descriptors cut short are -EMSGSIZE and nothing is
 * kept. */
ssize_t fd_recv(int sock, void *data, size_t size, int *fds, size_t max_fds, size_t *ret_n_fds);

/* Waits until fd is readable or timeout_ms has passed (negative: for ever).  1, 0 or -errno. */
int fd_wait_readable(int fd, int timeout_ms);

int fd_set_nonblocking(int fd, bool on);
int fd_set_cloexec(int fd, bool on);
