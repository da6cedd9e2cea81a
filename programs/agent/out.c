/* SPDX-License-Identifier: Apache-2.0 */
#include "out.h"

#include "wire/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CRUMB 4096

static size_t room(const struct out *out)
{
	return OUT_SIZE - (out->end - out->start);
}

bool out_is_open(const struct out *out)
{
	return room(out) >= OUT_RESERVE;
}

size_t out_data_room(const struct out *out)
{
	size_t have = room(out);

	if (have < OUT_RESERVE + FRAME_HEADER + CRUMB)
		return 0;
	have -= OUT_RESERVE + FRAME_HEADER;
	return have < OUT_DATA_MAX ? have : OUT_DATA_MAX;
}

struct pack out_begin(struct out *out)
{
	/* Not each time: moving costs as much as what it makes room for. */
	if (out->start > 0 && OUT_SIZE - out->end < FRAME_HEADER + OUT_DATA_MAX) {
		memmove(out->buffer, out->buffer + out->start, out->end - out->start);
		out->end -= out->start;
		out->start = 0;
	}
	size_t tail = OUT_SIZE - out->end;
	if (tail < FRAME_HEADER)
		abort(); /* nobody asked out_is_open() */
	return (struct pack){ .data = out->buffer + out->end + FRAME_HEADER,
			      .size = tail - FRAME_HEADER };
}

void out_end(struct out *out, uint16_t type, uint32_t channel, const struct pack *pack)
{
	if (pack->bad)
		abort(); /* larger than what was asked for */
	frame_header(out->buffer + out->end, type, channel, (uint32_t)pack->len);
	out->end += FRAME_HEADER + pack->len;
}

void out_failed(struct out *out, uint32_t channel, const struct err *err)
{
	struct pack pack = out_begin(out);

	pack_u32(&pack, (uint32_t)err->kind);
	pack_u32(&pack, (uint32_t)err->errnum);
	pack_text(&pack, err->text);
	out_end(out, AGENT_FAILED, channel, &pack);
}

void out_done(struct out *out, uint32_t channel, uint64_t value)
{
	struct pack pack = out_begin(out);

	pack_u64(&pack, value);
	out_end(out, AGENT_DONE, channel, &pack);
}

int out_flush(struct out *out, int fd)
{
	while (out->start < out->end) {
		ssize_t n = write(fd, out->buffer + out->start, out->end - out->start);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		out->start += (size_t)n;
	}
	out->start = out->end = 0;
	return 0;
}
