/* SPDX-License-Identifier: Apache-2.0
 *
 * wire/frame.h - the byte stream between agent and client, cut into frames.
 *
 *     u32 length of the payload   u16 type   u16 zero   u32 channel   payload
 *
 * Little-endian, payload at most 1 MiB.  The reader below never believes a length before it is
 * checked, never allocates, and works on whatever pieces the stream comes in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define FRAME_HEADER 12
#define FRAME_PAYLOAD_MAX (1u << 20)

struct frame {
	uint32_t len;
	uint16_t type;
	uint32_t channel;
	const uint8_t *payload; /* until the next frame_next() */
};

/* Collects bytes until a frame is whole.  The buffer is the owner's. */
struct frame_reader {
	uint8_t *buffer;
	size_t size; /* at least FRAME_HEADER + the largest payload that shall be accepted */
	size_t start, end;
};

void frame_reader_init(struct frame_reader *reader, uint8_t *buffer, size_t size);

/* Reads once from fd into the buffer.  Returns the number of bytes, 0 at the end, -errno
 * (-EAGAIN: nothing there). */
int frame_fill(struct frame_reader *reader, int fd);

/* Takes the next whole frame: 1 and *ret_frame, 0 when more bytes are needed, or -errno when the
 * peer broke the rules. */
int frame_next(struct frame_reader *reader, struct frame *ret_frame, struct err *err);

void frame_header(uint8_t ret_header[static FRAME_HEADER], uint16_t type, uint32_t channel,
		  uint32_t len);

/* Builds and reads payloads.  A writer that ran out of room and a reader that ran past its end
 * remember it: check ->bad once, at the end. */
struct pack {
	uint8_t *data;
	size_t size, len;
	bool bad;
};
void pack_u32(struct pack *pack, uint32_t value);
void pack_u64(struct pack *pack, uint64_t value);
void pack_bytes(struct pack *pack, const void *data, size_t len); /* no length in front */
void pack_text(struct pack *pack, const char *text);              /* u32 length, bytes */

struct unpack {
	const uint8_t *data;
	size_t len, at;
	bool bad;
};
uint32_t unpack_u32(struct unpack *unpack);
uint64_t unpack_u64(struct unpack *unpack);
/* A length-carried string without NUL in it, at most max bytes; not ended by NUL. */
const char *unpack_text(struct unpack *unpack, size_t max, size_t *ret_len);
/* What is left. */
const uint8_t *unpack_rest(struct unpack *unpack, size_t *ret_len);
/* Nothing bad happened and nothing is left. */
bool unpack_done(const struct unpack *unpack);
