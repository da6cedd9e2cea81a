/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static uint32_t load_u32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void store_u32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

void frame_reader_init(struct frame_reader *reader, uint8_t *buffer, size_t size)
{
	assert(size >= FRAME_HEADER);
	*reader = (struct frame_reader){ .buffer = buffer, .size = size };
}

/* Bytes move to the front only when a frame would not fit behind them any more. */
static void make_room(struct frame_reader *reader)
{
	size_t have = reader->end - reader->start;
	size_t whole = FRAME_HEADER;

	if (have >= FRAME_HEADER)
		whole += load_u32(reader->buffer + reader->start);
	if (reader->start == 0 || (have > 0 && whole <= reader->size - reader->start))
		return;
	memmove(reader->buffer, reader->buffer + reader->start, have);
	reader->start = 0;
	reader->end = have;
}

int frame_fill(struct frame_reader *reader, int fd)
{
	make_room(reader);
	size_t room = reader->size - reader->end;
	if (room == 0)
		return -ENOBUFS;
	if (room > INT_MAX)
		room = INT_MAX;

	for (;;) {
		ssize_t n = read(fd, reader->buffer + reader->end, room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		reader->end += (size_t)n;
		return (int)n;
	}
}

int frame_next(struct frame_reader *reader, struct frame *ret_frame, struct err *err)
{
	const uint8_t *at = reader->buffer + reader->start;
	size_t have = reader->end - reader->start;

	if (have < FRAME_HEADER)
		return 0;
	uint32_t len = load_u32(at);
	if (len > FRAME_PAYLOAD_MAX || len > reader->size - FRAME_HEADER)
		return err_make(err, ERR_PROTOCOL, "a frame of %u bytes is too long", len);
	if (at[6] != 0 || at[7] != 0)
		return err_make(err, ERR_PROTOCOL, "a frame's header is not one");
	if (have < FRAME_HEADER + len)
		return 0;

	*ret_frame = (struct frame){
		.len = len,
		.type = (uint16_t)(at[4] | at[5] << 8),
		.channel = load_u32(at + 8),
		.payload = at + FRAME_HEADER,
	};
	reader->start += FRAME_HEADER + len;
	return 1;
}

void frame_header(uint8_t ret_header[static FRAME_HEADER], uint16_t type, uint32_t channel,
		  uint32_t len)
{
	assert(len <= FRAME_PAYLOAD_MAX);
	store_u32(ret_header, len);
	ret_header[4] = (uint8_t)type;
	ret_header[5] = (uint8_t)(type >> 8);
	ret_header[6] = 0;
	ret_header[7] = 0;
	store_u32(ret_header + 8, channel);
}

/* The place for len more bytes, or NULL: then the pack is bad from now on. */
static uint8_t *grow(struct pack *pack, size_t len)
{
	if (pack->bad || len > pack->size - pack->len) {
		pack->bad = true;
		return NULL;
	}
	uint8_t *at = pack->data + pack->len;
	pack->len += len;
	return at;
}

void pack_u32(struct pack *pack, uint32_t value)
{
	uint8_t *at = grow(pack, 4);

	if (at)
		store_u32(at, value);
}

void pack_u64(struct pack *pack, uint64_t value)
{
	uint8_t *at = grow(pack, 8);

	if (!at)
		return;
	store_u32(at, (uint32_t)value);
	store_u32(at + 4, (uint32_t)(value >> 32));
}

void pack_bytes(struct pack *pack, const void *data, size_t len)
{
	uint8_t *at = grow(pack, len);

	if (at && len > 0)
		memcpy(at, data, len);
}

void pack_text(struct pack *pack, const char *text)
{
	size_t len = strlen(text);

	if (len > FRAME_PAYLOAD_MAX) {
		pack->bad = true;
		return;
	}
	pack_u32(pack, (uint32_t)len);
	pack_bytes(pack, text, len);
}

/* The next len bytes, or NULL: then the unpack is bad from now on. */
static const uint8_t *take(struct unpack *unpack, size_t len)
{
	if (unpack->bad || len > unpack->len - unpack->at) {
		unpack->bad = true;
		return NULL;
	}
	const uint8_t *at = unpack->data + unpack->at;
	unpack->at += len;
	return at;
}

uint32_t unpack_u32(struct unpack *unpack)
{
	const uint8_t *at = take(unpack, 4);

	return at ? load_u32(at) : 0;
}

uint64_t unpack_u64(struct unpack *unpack)
{
	const uint8_t *at = take(unpack, 8);

	return at ? load_u32(at) | (uint64_t)load_u32(at + 4) << 32 : 0;
}

const char *unpack_text(struct unpack *unpack, size_t max, size_t *ret_len)
{
	size_t len = unpack_u32(unpack);
	const uint8_t *at = len <= max ? take(unpack, len) : NULL;

	*ret_len = 0;
	if (!at || memchr(at, 0, len)) {
		unpack->bad = true;
		return "";
	}
	*ret_len = len;
	return (const char *)at;
}

const uint8_t *unpack_rest(struct unpack *unpack, size_t *ret_len)
{
	*ret_len = unpack->bad ? 0 : unpack->len - unpack->at;
	return take(unpack, *ret_len);
}

bool unpack_done(const struct unpack *unpack)
{
	return !unpack->bad && unpack->at == unpack->len;
}
