/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include "warden_fixture.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int pair[2];

static void make_pair(int type)
{
	CHECK_INT(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
}

static int count_open(void)
{
	auto_closedir DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir != NULL);
	while (readdir(dir))
		n++;
	return n;
}

TEST(fd_write_all_to_a_peer_that_is_gone_is_an_error)
{
	make_pair(SOCK_STREAM);
	close(pair[1]);
	CHECK_INT(fd_write_all(pair[0], "x", 1), -EPIPE);
}

TEST(fd_write_all_waits_for_a_slow_reader)
{
	static char out[1 << 20], in[1 << 20];

	make_pair(SOCK_STREAM);
	CHECK_INT(fd_set_nonblocking(pair[0], true), 0);
	memset(out, 'y', sizeof(out));
	pid_t pid = fork();
	if (pid == 0)
		_exit(fd_write_all(pair[0], out, sizeof(out)) == 0 ? 0 : 1);
	close(pair[0]);
	CHECK_INT(fd_read_exact(pair[1], in, sizeof(in)), (ssize_t)sizeof(in));
	CHECK_INT(memcmp(in, out, sizeof(in)), 0);
	CHECK_INT(fd_read_exact(pair[1], in, 1), 0);
	int status = -1;
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

TEST(fd_read_exact_tells_a_clean_end_from_a_cut)
{
	char data[8];

	make_pair(SOCK_STREAM);
	CHECK_INT(fd_write_all(pair[0], "abc", 3), 0);
	close(pair[0]);
	CHECK_INT(fd_read_exact(pair[1], data, sizeof(data)), -EPIPE);
	CHECK_INT(fd_read_exact(pair[1], data, sizeof(data)), 0);
	CHECK_INT(fd_read_exact(-1, data, sizeof(data)), -EBADF);
}

TEST(fd_read_text_ends_with_nul_and_refuses_more_than_fits)
{
	int dir = tmp_make();
	char text[8];

	make_file(dir, "f", "1234567", 0600);
	memset(text, 'x', sizeof(text));
	CHECK_INT(fd_read_text_at(dir, "f", text, sizeof(text)), 7);
	CHECK_STR(text, "1234567");
	make_file(dir, "f", "12345678", 0600);
	CHECK_INT(fd_read_text_at(dir, "f", text, sizeof(text)), -EFBIG);
	make_file(dir, "f", "", 0600);
	CHECK_INT(fd_read_text_at(dir, "f", text, sizeof(text)), 0);
	CHECK_STR(text, "");
	CHECK_INT(fd_read_text_at(dir, "none", text, sizeof(text)), -ENOENT);
	close(dir);
	tmp_finish();
}

TEST(fd_write_text_at_makes_no_file)
{
	int dir = tmp_make();
	char text[8];

	CHECK_INT(fd_write_text_at(dir, "f", "x"), -ENOENT);
	make_file(dir, "f", "", 0600);
	CHECK_INT(fd_write_text_at(dir, "f", "abc"), 0);
	CHECK_INT(fd_read_text_at(dir, "f", text, sizeof(text)), 3);
	close(dir);
	tmp_finish();
}

TEST(fd_recv_gets_the_packet_and_its_descriptors_cloexec)
{
	int sent[2], got[2];
	size_t n_got = 0;
	char data[16];

	make_pair(SOCK_SEQPACKET);
	CHECK_INT(pipe(sent), 0);
	CHECK_INT(fd_send(pair[0], "hello", 5, sent, 2), 0);
	CHECK_INT(fd_recv(pair[1], data, sizeof(data), got, 2, &n_got), 5);
	CHECK_INT(n_got, 2);
	CHECK_INT(fcntl(got[0], F_GETFD), FD_CLOEXEC);
	CHECK_INT(write(got[1], "z", 1), 1);
	CHECK_INT(read(sent[0], data, 1), 1);
}

TEST(fd_recv_refuses_too_many_descriptors_and_closes_them)
{
	int three[] = { 0, 1, 2 }, got[2] = { -7, -7 };
	size_t n_got = 99;
	char data[16];

	make_pair(SOCK_SEQPACKET);
	int before = count_open();
	CHECK_INT(fd_send(pair[0], "x", 1, three, 3), 0);
	CHECK_INT(fd_recv(pair[1], data, sizeof(data), got, 2, &n_got), -EMSGSIZE);
	CHECK_INT(n_got, 99);
	CHECK_INT(got[0], -7);
	CHECK_INT(fd_send(pair[0], "x", 1, three, 1), 0);
	CHECK_INT(fd_recv(pair[1], data, sizeof(data), NULL, 0, NULL), -EMSGSIZE);
	CHECK_INT(count_open(), before);
}

/* More than our buffer has room for: the kernel cuts, and what it did give must go again. */
TEST(fd_recv_refuses_more_descriptors_than_it_has_room_for)
{
	enum { MANY = 200 };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(MANY * sizeof(int))];
	} control = { 0 };
	char byte = 'x', data[16];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int got[FD_PASS_MAX], many[MANY];

	make_pair(SOCK_SEQPACKET);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(many));
	for (int i = 0; i < MANY; i++)
		many[i] = 1;
	memcpy(CMSG_DATA(c), many, sizeof(many));
	int before = count_open();
	CHECK_INT(sendmsg(pair[0], &msg, 0), 1);
	size_t n_got = 99;
	CHECK_INT(fd_recv(pair[1], data, sizeof(data), got, FD_PASS_MAX, &n_got), -EMSGSIZE);
	CHECK_INT(count_open(), before);
	CHECK_INT(fd_send(pair[0], "x", 1, many, FD_PASS_MAX + 1), -E2BIG);
}

TEST(fd_recv_refuses_a_packet_that_is_cut_short)
{
	int one = 0, got[1];
	char data[4];

	make_pair(SOCK_SEQPACKET);
	int before = count_open();
	CHECK_INT(fd_send(pair[0], "12345", 5, &one, 1), 0);
	CHECK_INT(fd_recv(pair[1], data, sizeof(data), got, 1, NULL), -EMSGSIZE);
	CHECK_INT(count_open(), before);
}

/* Who takes it for the end would never close what came along. */
TEST(fd_recv_keeps_nothing_of_an_empty_packet)
{
	int one = 0, got[1] = { -7 };
	size_t n_got = 99;
	char data[4];

	make_pair(SOCK_SEQPACKET);
	int before = count_open();
	CHECK_INT(fd_send(pair[0], "", 0, &one, 1), 0);
	CHECK_INT(fd_recv(pair[1], data, sizeof(data), got, 1, &n_got), 0);
	CHECK_INT(n_got, 0);
	CHECK_INT(count_open(), before);
	close(pair[0]);
	CHECK_INT(fd_recv(pair[1], data, sizeof(data), got, 1, &n_got), 0);
}

TEST(fd_wait_readable_waits_as_long_as_asked)
{
	make_pair(SOCK_STREAM);
	CHECK_INT(fd_wait_readable(pair[0], 0), 0);
	CHECK_INT(fd_wait_readable(pair[0], 20), 0);
	CHECK_INT(fd_write_all(pair[1], "x", 1), 0);
	CHECK_INT(fd_wait_readable(pair[0], -1), 1);
}

TEST(fd_flags_are_set_and_taken_away)
{
	make_pair(SOCK_STREAM);
	CHECK_INT(fd_set_nonblocking(pair[0], true), 0);
	CHECK(fcntl(pair[0], F_GETFL) & O_NONBLOCK);
	CHECK_INT(fd_set_nonblocking(pair[0], false), 0);
	CHECK(!(fcntl(pair[0], F_GETFL) & O_NONBLOCK));
	CHECK_INT(fd_set_cloexec(pair[0], false), 0);
	CHECK_INT(fcntl(pair[0], F_GETFD), 0);
	CHECK_INT(fd_set_cloexec(-1, true), -EBADF);
}
