/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define IN_SIZE (FRAME_HEADER + FRAME_PAYLOAD_MAX)
#define FILE_PIECE 65536
#define ANSWER_MS 10000

int link_init(struct link *link, int fd, int abort_fd, struct err *err)
{
	*link = (struct link){ .fd = fd, .abort_fd = abort_fd };
	link->in = malloc(IN_SIZE);
	if (!link->in)
		return err_errno(err, ENOMEM, "make room for frames");
	frame_reader_init(&link->reader, link->in, IN_SIZE);
	int r = fd_set_nonblocking(fd, true);
	return r < 0 ? err_errno(err, -r, "prepare the agent's stream") : 0;
}

void link_finish(struct link *link)
{
	drop_fd(&link->fd);
	free(link->in);
	free(link->out);
	link->in = link->out = NULL;
}

bool link_has_queue(const struct link *link)
{
	return link->out_start < link->out_end;
}

int link_flush(struct link *link, struct err *err)
{
	while (link_has_queue(link)) {
		ssize_t n = send(link->fd, link->out + link->out_start,
				 link->out_end - link->out_start, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return err_errno(err, errno, "speak to the sandbox");
		link->out_start += (size_t)n;
	}
	link->out_start = link->out_end = 0;
	return 0;
}

/* Room for len more bytes at the end of the queue. */
static int reserve(struct link *link, size_t len, struct err *err)
{
	if (link->out_start > 0) {
		memmove(link->out, link->out + link->out_start, link->out_end - link->out_start);
		link->out_end -= link->out_start;
		link->out_start = 0;
	}
	if (link->out_end + len <= link->out_size)
		return 0;
	size_t size = (link->out_end + len) * 2;
	uint8_t *grown = realloc(link->out, size);
	if (!grown)
		return err_errno(err, ENOMEM, "queue a frame");
	link->out = grown;
	link->out_size = size;
	return 0;
}

int link_queue(struct link *link, uint16_t type, uint32_t channel, const void *payload, size_t len,
	       struct err *err)
{
	int r = reserve(link, FRAME_HEADER + len, err);

	if (r < 0)
		return r;
	frame_header(link->out + link->out_end, type, channel, (uint32_t)len);
	if (len > 0)
		memcpy(link->out + link->out_end + FRAME_HEADER, payload, len);
	link->out_end += FRAME_HEADER + len;
	return 0;
}

int link_send(struct link *link, uint16_t type, uint32_t channel, const void *payload, size_t len,
	      struct err *err)
{
	int r = link_queue(link, type, channel, payload, len, err);

	return r < 0 ? r : link_flush(link, err);
}

int link_send_pack(struct link *link, uint16_t type, uint32_t channel, const struct pack *pack,
		   struct err *err)
{
	if (pack->bad || pack->len > FRAME_PAYLOAD_MAX)
		return err_make(err, ERR_LIMIT, "a request to the sandbox is too long");
	return link_send(link, type, channel, pack->data, pack->len, err);
}

int link_signal(struct link *link, uint32_t channel, int signal, enum agent_scope scope,
		struct err *err)
{
	uint8_t payload[8];
	struct pack pack = { .data = payload, .size = sizeof(payload) };

	pack_u32(&pack, (uint32_t)signal);
	pack_u32(&pack, scope);
	return link_send_pack(link, AGENT_SIGNAL, channel, &pack, err);
}

int link_credit(struct link *link, uint32_t channel, uint32_t bytes, struct err *err)
{
	uint8_t payload[4];
	struct pack pack = { .data = payload, .size = sizeof(payload) };

	pack_u32(&pack, bytes);
	return link_send_pack(link, AGENT_CREDIT, channel, &pack, err);
}

int link_fill(struct link *link, struct err *err)
{
	int r = frame_fill(&link->reader, link->fd);

	if (r == -EAGAIN)
		return 0;
	if (r == 0 || r == -ECONNRESET)
		return err_errno(err, EPIPE, "hear from the sandbox");
	return r < 0 ? err_errno(err, -r, "hear from the sandbox") : 1;
}

int link_next(struct link *link, struct agent_message *ret_message, struct err *err)
{
	struct frame frame;
	int r = frame_next(&link->reader, &frame, err);

	if (r <= 0)
		return r;
	r = agent_decode(&frame, ret_message, err);
	return r < 0 ? r : 1;
}

/* Until the stream can be read, or written when there is something to write. */
static int wait_once(struct link *link, int64_t deadline_ms, struct err *err)
{
	struct pollfd polls[] = {
		{ .fd = link->fd,
		  .events = (short)(POLLIN | (link_has_queue(link) ? POLLOUT : 0)) },
		{ .fd = link->abort_fd, .events = POLLIN },
	};
	int64_t left = deadline_ms - clock_mono_ms();

	if (left < 0 || poll(polls, ARRAY_LEN(polls), (int)left) == 0)
		return err_make(err, ERR_TIMEOUT, "the sandbox did not answer in time");
	if (polls[1].revents)
		return err_make(err, ERR_CONFLICT, "stopped by a signal");
	if (polls[0].revents & POLLOUT)
		return link_flush(link, err);
	return 0;
}

int link_wait(struct link *link, int timeout_ms, struct agent_message *ret_message, struct err *err)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;

	for (;;) {
		int r = link_next(link, ret_message, err);
		if (r != 0)
			return r;
		r = wait_once(link, deadline, err);
		if (r < 0)
			return r;
		r = link_fill(link, err);
		if (r < 0)
			return r;
	}
}

/* Waits until the agent gave credit on the channel; it is added to *credit. */
static int wait_credit(struct link *link, uint32_t channel, size_t *credit, struct err *err)
{
	while (*credit == 0) {
		struct agent_message message;
		int r = link_wait(link, ANSWER_MS, &message, err);
		if (r < 0)
			return r;
		if (message.type == AGENT_CREDIT && message.channel == channel)
			*credit += message.credit.bytes;
		else if (message.type == AGENT_FAILED && message.channel == channel) {
			*err = message.failed;
			return -err->errnum;
		}
	}
	return 0;
}

int link_put_file(struct link *link, uint32_t channel, const char *path, uint32_t mode,
		  const void *data, size_t len, struct err *err)
{
	uint8_t payload[AGENT_PATH_MAX + 16];
	struct pack pack = { .data = payload, .size = sizeof(payload) };
	const uint8_t *at = data;
	size_t left = len, credit = AGENT_STDIN_WINDOW;

	pack_text(&pack, path);
	pack_u32(&pack, mode);
	pack_u32(&pack, WRITE_PARENTS);
	if (pack.bad)
		return err_make(err, ERR_INVALID, "the file name is too long");
	/* Not sent yet: with small files all that follows goes out in one write. */
	int r = link_queue(link, AGENT_WRITE, channel, pack.data, pack.len, err);
	while (r >= 0 && left > 0) {
		r = wait_credit(link, channel, &credit, err);
		if (r < 0)
			return r;
		size_t n = left < credit ? left : credit;
		n = n < FILE_PIECE ? n : FILE_PIECE;
		r = link_queue(link, AGENT_DATA, channel, at, n, err);
		at += n;
		left -= n;
		credit -= n;
		if (r >= 0 && left > 0)
			r = link_flush(link, err);
	}
	pack = (struct pack){ .data = payload, .size = sizeof(payload) };
	pack_u64(&pack, len);
	return r < 0 ? r : link_queue(link, AGENT_DONE, channel, pack.data, pack.len, err);
}
