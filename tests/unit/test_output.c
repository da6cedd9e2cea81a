/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include "base/auto.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

static struct output output;

/* What a reader would see in the end: head, then tail. */
static size_t kept(char *ret)
{
	const uint8_t *pieces[2];
	size_t lens[2], n = output.head_len;

	memcpy(ret, output.head, n);
	output_tail(&output, pieces, lens);
	for (int i = 0; i < 2; i++) {
		memcpy(ret + n, pieces[i], lens[i]);
		n += lens[i];
	}
	ret[n] = '\0';
	return n;
}

static void add(const char *text)
{
	CHECK_INT(output_add(&output, text, strlen(text)), 0);
}

TEST(output_within_the_cap_is_kept_whole)
{
	char all[64];

	output_init(&output, 10);
	add("abcde");
	CHECK_INT(output_dropped(&output), 0);
	add("fghij");
	kept(all);
	CHECK_STR(all, "abcdefghij");
	CHECK_INT(output_dropped(&output), 0);
	output_finish(&output);
}

TEST(output_beyond_the_cap_keeps_head_and_tail)
{
	char all[64];

	output_init(&output, 10);
	add("abc");
	add("defghijkl");
	add("mnopq");
	kept(all);
	CHECK_STR(all, "abcdemnopq");
	CHECK_INT(output_dropped(&output), 7);
	CHECK_INT(output.total, 17);
	output_finish(&output);
}

TEST(output_one_huge_piece_keeps_its_ends)
{
	char all[64];

	output_init(&output, 8);
	add("0123456789abcdefghijklmnopqrstuvwxyz");
	kept(all);
	CHECK_STR(all, "0123wxyz");
	output_finish(&output);
}

TEST(output_byte_by_byte_is_the_same_as_at_once)
{
	char once[64], single[64];
	const char *text = "The quick brown fox jumps over the lazy dog";

	for (size_t cap = 2; cap < 50; cap++) {
		output_init(&output, cap);
		add(text);
		kept(once);
		uint64_t dropped = output_dropped(&output);
		output_finish(&output);
		output_init(&output, cap);
		for (const char *c = text; *c; c++)
			CHECK_INT(output_add(&output, c, 1), 0);
		kept(single);
		CHECK_STR(single, once);
		CHECK_INT(output_dropped(&output), dropped);
		output_finish(&output);
	}
}

TEST(output_digest_is_of_all_that_was_produced)
{
	char got[DIGEST_HEX_SIZE], want[DIGEST_HEX_SIZE];

	output_init(&output, 4);
	add("hello ");
	add("world, this is long");
	digest_final(&output.digest, got);
	digest_of("hello world, this is long", 25, want);
	CHECK_STR(got, want);
	output_finish(&output);
}

TEST(output_keeps_zero_bytes)
{
	output_init(&output, 64);
	CHECK_INT(output_add(&output, "a\0b\xff", 4), 0);
	CHECK_INT(output.head_len, 4);
	CHECK(memcmp(output.head, "a\0b\xff", 4) == 0);
	output_finish(&output);
}

TEST(output_show_writes_the_head_once)
{
	int pipes[2];
	char got[64];

	CHECK(pipe(pipes) == 0);
	output_init(&output, 8);
	add("abcdefghij");
	CHECK_INT(output_waiting(&output), 4);
	CHECK_INT(output_show(&output, pipes[1]), 4);
	CHECK_INT(output_waiting(&output), 0);
	CHECK_INT(output_show(&output, pipes[1]), 0);
	CHECK_INT(read(pipes[0], got, sizeof(got)), 4);
	CHECK(memcmp(got, "abcd", 4) == 0);
	output_finish(&output);
}

TEST(output_show_says_when_nobody_reads)
{
	int pipes[2];

	signal(SIGPIPE, SIG_IGN);
	CHECK(pipe(pipes) == 0);
	close(pipes[0]);
	output_init(&output, 8);
	add("x");
	CHECK_INT(output_show(&output, pipes[1]), -EPIPE);
	output_finish(&output);
}
