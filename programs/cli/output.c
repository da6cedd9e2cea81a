/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A pipe that poll() calls writable takes this much at once. */
#define SHOW_BYTES 4096
#define HEAD_FIRST 16384

void output_init(struct output *output, uint64_t cap)
{
	*output = (struct output){ .head_max = (size_t)(cap - cap / 2),
				   .ring_size = (size_t)(cap / 2) };
	digest_init(&output->digest);
}

void output_finish(struct output *output)
{
	free(output->head);
	free(output->ring);
	output->head = output->ring = NULL;
}

static int grow_head(struct output *output, size_t want)
{
	size_t size = output->head_size ? output->head_size : HEAD_FIRST;

	while (size < want)
		size *= 2;
	if (size > output->head_max)
		size = output->head_max;
	uint8_t *grown = realloc(output->head, size);
	if (!grown)
		return -ENOMEM;
	output->head = grown;
	output->head_size = size;
	return 0;
}

static void add_to_ring(struct output *output, const uint8_t *data, size_t len)
{
	/* Of more than a ring only the end can stay. */
	if (len > output->ring_size) {
		data += len - output->ring_size;
		len = output->ring_size;
	}
	size_t first = output->ring_size - output->ring_at;
	if (first > len)
		first = len;
	memcpy(output->ring + output->ring_at, data, first);
	memcpy(output->ring, data + first, len - first);
	output->ring_at = (output->ring_at + len) % output->ring_size;
	output->ring_len += len;
	if (output->ring_len > output->ring_size)
		output->ring_len = output->ring_size;
}

int output_add(struct output *output, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	size_t for_head = output->head_max - output->head_len;

	output->total += len;
	digest_update(&output->digest, bytes, len);
	if (for_head > len)
		for_head = len;
	/* Once something went to the ring, the head is closed: it must stay a prefix. */
	if (output->ring)
		for_head = 0;
	if (for_head > 0) {
		if (output->head_len + for_head > output->head_size &&
		    grow_head(output, output->head_len + for_head) < 0)
			return -ENOMEM;
		memcpy(output->head + output->head_len, bytes, for_head);
		output->head_len += for_head;
	}
	if (len == for_head || output->ring_size == 0)
		return 0;
	if (!output->ring)
		output->ring = malloc(output->ring_size);
	if (!output->ring)
		return -ENOMEM;
	add_to_ring(output, bytes + for_head, len - for_head);
	return 0;
}

size_t output_waiting(const struct output *output)
{
	return output->head_len - output->shown;
}

int output_show(struct output *output, int fd)
{
	size_t len = output_waiting(output);
	const uint8_t *from = output->head + output->shown;

	if (len == 0)
		return 0;
	if (len > SHOW_BYTES)
		len = SHOW_BYTES;
	/* The descriptor may be shared with others, so it is not ours to make non-blocking. */
	ssize_t n = send(fd, from, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno == ENOTSOCK)
		n = write(fd, from, len);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	output->shown += (size_t)n;
	return (int)n;
}

uint64_t output_dropped(const struct output *output)
{
	return output->total - output->head_len - output->ring_len;
}

void output_tail(const struct output *output, const uint8_t *ret_pieces[2], size_t ret_lens[2])
{
	bool wrapped = output->ring_len == output->ring_size;
	size_t start = wrapped ? output->ring_at : 0;

	ret_pieces[0] = output->ring ? output->ring + start : NULL;
	ret_lens[0] = wrapped ? output->ring_size - start : output->ring_len;
	ret_pieces[1] = output->ring;
	ret_lens[1] = wrapped ? start : 0;
}
