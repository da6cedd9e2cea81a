/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include "base/err.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>

static uint8_t buffer[FRAME_HEADER + FRAME_PAYLOAD_MAX];

static void give(int fd, const void *data, size_t len)
{
	CHECK_INT(write(fd, data, len), (long long)len);
}

static void make_pipe(int fds[2])
{
	CHECK_INT(pipe2(fds, O_NONBLOCK), 0);
}

TEST(frame_reader_takes_a_stream_in_single_bytes)
{
	struct frame_reader reader;
	struct frame frame;
	struct err err;
	uint8_t bytes[FRAME_HEADER + 5];
	int fds[2], found = 0;

	make_pipe(fds);
	frame_reader_init(&reader, buffer, sizeof(buffer));
	frame_header(bytes, 0x1234, 0x89abcdef, 5);
	memcpy(bytes + FRAME_HEADER, "hello", 5);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		CHECK_INT(frame_next(&reader, &frame, &err), 0);
		give(fds[1], bytes + i, 1);
		CHECK_INT(frame_fill(&reader, fds[0]), 1);
	}
	found = frame_next(&reader, &frame, &err);
	CHECK_INT(found, 1);
	CHECK_INT(frame.type, 0x1234);
	CHECK_INT(frame.channel, 0x89abcdef);
	CHECK_INT(frame.len, 5);
	CHECK(memcmp(frame.payload, "hello", 5) == 0);
	CHECK_INT(frame_next(&reader, &frame, &err), 0);
	CHECK_INT(frame_fill(&reader, fds[0]), -EAGAIN);
	close(fds[1]);
	CHECK_INT(frame_fill(&reader, fds[0]), 0);
}

TEST(frame_reader_takes_many_frames_of_a_small_buffer)
{
	uint8_t small[FRAME_HEADER + 10], bytes[FRAME_HEADER + 10] = { 0 };
	struct frame_reader reader;
	struct frame frame;
	struct err err;
	int fds[2];
	unsigned seen = 0;

	make_pipe(fds);
	frame_reader_init(&reader, small, sizeof(small));
	for (uint32_t i = 0; i < 1000; i++) {
		frame_header(bytes, 7, i, i % 11);
		memset(bytes + FRAME_HEADER, (int)i, 10);
		give(fds[1], bytes, FRAME_HEADER + i % 11);
	}
	close(fds[1]);
	for (int n = 1; n > 0;) {
		int r;
		while ((r = frame_next(&reader, &frame, &err)) == 1) {
			CHECK_INT(frame.channel, seen);
			CHECK_INT(frame.len, seen % 11);
			for (uint32_t i = 0; i < frame.len; i++)
				CHECK_INT(frame.payload[i], seen & 0xff);
			seen++;
		}
		CHECK_INT(r, 0);
		n = frame_fill(&reader, fds[0]);
	}
	CHECK_INT(seen, 1000);
}

static int next_of(const uint8_t *bytes, size_t len, size_t size, struct err *err)
{
	struct frame_reader reader;
	struct frame frame;
	int fds[2];

	make_pipe(fds);
	frame_reader_init(&reader, buffer, size);
	give(fds[1], bytes, len);
	CHECK_INT(frame_fill(&reader, fds[0]), (long long)len);
	return frame_next(&reader, &frame, err);
}

TEST(frame_reader_refuses_a_length_that_is_too_long)
{
	struct err err;
	uint8_t header[FRAME_HEADER] = { 0x01, 0x00, 0x10, 0x00, 1 }; /* 1 MiB + 1 */

	CHECK_INT(next_of(header, sizeof(header), sizeof(buffer), &err), -EPROTO);
	memset(header, 0xff, 4);
	CHECK_INT(next_of(header, sizeof(header), sizeof(buffer), &err), -EPROTO);
	CHECK_INT(err.kind, ERR_PROTOCOL);
	frame_header(header, 1, 0, 100); /* legal, but more than this reader has room for */
	CHECK_INT(next_of(header, sizeof(header), FRAME_HEADER + 99, &err), -EPROTO);
	CHECK_INT(next_of(header, sizeof(header), FRAME_HEADER + 100, &err), 0);
}

TEST(frame_reader_refuses_bytes_that_must_be_zero)
{
	struct err err;
	uint8_t header[FRAME_HEADER];

	frame_header(header, 1, 0, 0);
	CHECK_INT(next_of(header, sizeof(header), sizeof(buffer), &err), 1);
	header[7] = 1;
	CHECK_INT(next_of(header, sizeof(header), sizeof(buffer), &err), -EPROTO);
}

TEST(pack_and_unpack_agree)
{
	uint8_t data[64];
	struct pack pack = { .data = data, .size = sizeof(data) };
	size_t len;

	pack_u32(&pack, 0xdeadbeef);
	pack_u64(&pack, 0x0123456789abcdef);
	pack_text(&pack, "text");
	pack_text(&pack, "");
	pack_bytes(&pack, "rest", 4);
	CHECK(!pack.bad);

	struct unpack unpack = { .data = data, .len = pack.len };
	CHECK_INT(unpack_u32(&unpack), 0xdeadbeef);
	CHECK(unpack_u64(&unpack) == 0x0123456789abcdef);
	const char *text = unpack_text(&unpack, 4, &len);
	CHECK(len == 4 && memcmp(text, "text", 4) == 0);
	unpack_text(&unpack, 4, &len);
	CHECK_INT(len, 0);
	CHECK(!unpack_done(&unpack));
	const uint8_t *rest = unpack_rest(&unpack, &len);
	CHECK(len == 4 && memcmp(rest, "rest", 4) == 0);
	CHECK(unpack_done(&unpack));
}

TEST(pack_remembers_that_it_ran_out_of_room)
{
	uint8_t data[7];
	struct pack pack = { .data = data, .size = sizeof(data) };

	pack_u32(&pack, 1);
	pack_u32(&pack, 2);
	CHECK(pack.bad);
	CHECK_INT(pack.len, 4);
	pack_bytes(&pack, "x", 1);
	CHECK_INT(pack.len, 4);
}

TEST(unpack_never_reads_past_its_end)
{
	uint8_t data[8] = { 5, 0, 0, 0, 'a', 'b', 'c', 'd' }; /* says 5, has 4 */
	struct unpack unpack = { .data = data, .len = sizeof(data) };
	size_t len = 99;

	unpack_text(&unpack, 100, &len);
	CHECK_INT(len, 0);
	CHECK(unpack.bad);
	CHECK_INT(unpack_u32(&unpack), 0);
	CHECK_INT(unpack_u64(&unpack), 0);
	unpack_rest(&unpack, &len);
	CHECK_INT(len, 0);
	CHECK(!unpack_done(&unpack));
}

TEST(unpack_text_refuses_nul_and_more_than_its_maximum)
{
	uint8_t with_nul[] = { 3, 0, 0, 0, 'a', 0, 'c' };
	uint8_t plain[] = { 3, 0, 0, 0, 'a', 'b', 'c' };
	struct unpack unpack = { .data = with_nul, .len = sizeof(with_nul) };
	size_t len;

	unpack_text(&unpack, 10, &len);
	CHECK(unpack.bad);
	unpack = (struct unpack){ .data = plain, .len = sizeof(plain) };
	unpack_text(&unpack, 2, &len);
	CHECK(unpack.bad);
	unpack = (struct unpack){ .data = plain, .len = sizeof(plain) };
	unpack_text(&unpack, 3, &len);
	CHECK(!unpack.bad && len == 3);
}
