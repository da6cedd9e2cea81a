/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client believes of an agent: a stream of frames, each decoded.  The input is the stream;
 * it comes in pieces whose size is the first byte. */
#include "base/err.h"
#include "wire/agent.h"
#include "wire/frame.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sum; /* so that what is read is not left out */

static void look(const struct frame *frame)
{
	struct agent_message message;
	struct err err;

	if (agent_decode(frame, &message, &err) < 0)
		return;
	switch (message.type) {
	case AGENT_STDOUT:
	case AGENT_STDERR:
	case AGENT_DATA:
		for (size_t i = 0; i < message.data.len; i++)
			sum += message.data.data[i];
		break;
	case AGENT_DENIED:
		for (size_t i = 0; i < 8u * message.denied.count; i++)
			sum += message.denied.pairs[i];
		break;
	case AGENT_ENTRY:
		if (memchr(message.entry.path, 0, message.entry.path_len))
			abort();
		break;
	case AGENT_FAILED:
		sum += strlen(message.failed.text) + strlen(err_code(&message.failed));
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 60000)
		return 0;
	/* Exactly as large as the largest frame it takes, so that a byte too many is seen. */
	size_t room = FRAME_HEADER + 4096, piece = 1u + data[0];
	uint8_t *buffer = malloc(room);
	struct frame_reader reader;
	int fds[2];

	if (!buffer || pipe(fds) < 0)
		abort();
	frame_reader_init(&reader, buffer, room);
	for (size_t at = 1; at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		if (write(fds[1], data + at, n) != (ssize_t)n)
			abort();
		for (size_t got = 0; got < n;) {
			int r = frame_fill(&reader, fds[0]);
			struct frame frame;
			struct err err;
			if (r <= 0)
				abort();
			got += (size_t)r;
			while ((r = frame_next(&reader, &frame, &err)) == 1)
				look(&frame);
			if (r < 0)
				goto out;
		}
	}
out:
	close(fds[0]);
	close(fds[1]);
	free(buffer);
	return 0;
}
