/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt_fixture.h"

#include <sys/mman.h>

#define LINES 6

static char *whole;
static size_t whole_len;
static size_t starts[LINES + 1];

/* A chain of six, whose lines are whole + starts[i] .. starts[i + 1]. */
static void make_chain(void)
{
	fixture_state();
	fixture_append_many(LINES);
	whole = fixture_read(&whole_len);
	for (size_t i = 0; i < LINES; i++)
		starts[i + 1] = (size_t)(strchr(whole + starts[i], '\n') - whole) + 1;
	CHECK(starts[LINES] == whole_len);
}

/* Writes the lines of that order, counted from 1. */
static void write_order(const char *order)
{
	char *text = malloc(2 * whole_len);
	size_t len = 0;

	for (; *order; order++) {
		size_t i = (size_t)(*order - '1');
		memcpy(text + len, whole + starts[i], starts[i + 1] - starts[i]);
		len += starts[i + 1] - starts[i];
	}
	fixture_write(text, len);
	free(text);
}

static void check_first_bad(enum receipt_fault fault, unsigned line, unsigned seq)
{
	struct receipt_check check = fixture_verify();

	CHECK_INT(check.verdict, RECEIPT_INVALID);
	CHECK_STR(receipt_fault_name(check.fault), receipt_fault_name(fault));
	CHECK_INT((long long)check.line, line);
	CHECK_INT((long long)check.seq, seq);
	CHECK_INT((long long)check.good, seq - 1);
	CHECK(check.reason[0] != '\0');
}

TEST(verify_accepts_a_whole_chain)
{
	make_chain();
	struct receipt_check check = fixture_verify();
	CHECK_INT(check.verdict, RECEIPT_VALID);
	CHECK_INT((long long)check.good, LINES);
	CHECK_INT((long long)check.line, 0);
	CHECK_INT((long long)check.first_seq, 1);
	CHECK_INT((long long)check.last_seq, LINES);
}

TEST(verify_accepts_an_empty_chain)
{
	make_chain();
	fixture_write("", 0);
	CHECK_INT(fixture_verify().verdict, RECEIPT_VALID);
	CHECK_STR(fixture_verify().head, DIGEST_ZERO);
}

TEST(verify_names_the_one_that_was_deleted)
{
	make_chain();
	write_order("12456");
	check_first_bad(RECEIPT_FAULT_ORDER, 3, 3);
	write_order("23456");
	check_first_bad(RECEIPT_FAULT_ORDER, 1, 1);
}

TEST(verify_names_the_one_that_was_moved_or_doubled)
{
	make_chain();
	write_order("124356");
	check_first_bad(RECEIPT_FAULT_ORDER, 3, 3);
	write_order("1233456");
	check_first_bad(RECEIPT_FAULT_ORDER, 4, 4);
}

TEST(verify_names_the_one_that_was_put_in)
{
	make_chain();
	/* One of another chain under the same key, with the seq that fits: only prev can tell. */
	CHECK(unlink(fixture_path(RECEIPT_CHAIN)) == 0);
	fixture_append_many(3);
	size_t other_len;
	auto_free char *other = fixture_read(&other_len);
	size_t third = (size_t)(strchr(strchr(other, '\n') + 1, '\n') - other) + 1;

	auto_free char *text = malloc(whole_len + other_len);
	size_t len = starts[2];
	memcpy(text, whole, len);
	memcpy(text + len, other + third, other_len - third);
	len += other_len - third;
	memcpy(text + len, whole + starts[3], whole_len - starts[3]);
	fixture_write(text, len + whole_len - starts[3]);
	check_first_bad(RECEIPT_FAULT_CHAIN, 3, 3);
}

TEST(verify_notices_every_flipped_bit)
{
	struct receipt_keys keys = { 0 };
	struct receipt_check check;
	struct err err = { 0 };

	make_chain();
	CHECK_INT(receipt_keys_add_file(&keys, fixture_path(RECEIPT_PUBLIC_KEY), &err), 0);
	auto_close int fd = memfd_create("chain", MFD_CLOEXEC);
	CHECK(pwrite(fd, whole, starts[3], 0) == (ssize_t)starts[3]);
	/* The second line with its newline, before and after good ones. */
	for (size_t at = starts[1]; at < starts[2]; at++) {
		for (int bit = 0; bit < 8; bit++) {
			char flipped = (char)(whole[at] ^ (1 << bit));
			CHECK(pwrite(fd, &flipped, 1, (off_t)at) == 1 &&
			      lseek(fd, 0, SEEK_SET) == 0);
			CHECK_INT(receipt_verify(fd, &keys, false, &check, &err), 0);
			if (check.verdict != RECEIPT_INVALID || check.line != 2)
				END(EXIT_FAILURE, "byte %zu bit %d: %s, line %d", at, bit,
				    receipt_verdict_name(check.verdict), (int)check.line);
		}
		CHECK(pwrite(fd, whole + at, 1, (off_t)at) == 1);
	}
}

TEST(verify_flipped_payload_is_a_matter_of_the_signature)
{
	make_chain();
	char *payload = strstr(whole + starts[2], "\"payload\":\"") + 11;
	payload[200] = payload[200] == 'A' ? 'B' : 'A';
	fixture_write(whole, whole_len);
	check_first_bad(RECEIPT_FAULT_SIGNATURE, 3, 3);
}

TEST(verify_garbage_is_a_matter_of_the_format)
{
	static const char *const garbage[] = {
		"\n",
		"null\n",
		"{}\n",
		"[[[[\n",
		"{\"payload\":1,\"payloadType\":2,\"signatures\":3}\n",
		"\xff\xfe\n",
		("{\"payloadType\":\"application/vnd.in-toto+json\",\"payload\":\"\","
		 "\"signatures\":[]}\n"),
	};

	make_chain();
	for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
		auto_free char *text = malloc(whole_len + 1000);
		memcpy(text, whole, starts[1]);
		size_t len = strlen(garbage[i]);
		memcpy(text + starts[1], garbage[i], len);
		memcpy(text + starts[1] + len, whole + starts[1], whole_len - starts[1]);
		fixture_write(text, whole_len + len);
		check_first_bad(RECEIPT_FAULT_FORMAT, 2, 2);
	}
}

TEST(verify_endless_line_needs_no_endless_memory)
{
	make_chain();
	auto_close int fd = open(fixture_path(RECEIPT_CHAIN), O_RDWR | O_APPEND | O_CLOEXEC);
	char block[4096];

	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 1024; i++)
		CHECK(write(fd, block, sizeof(block)) == (ssize_t)sizeof(block));
	CHECK(write(fd, "\n", 1) == 1);
	check_first_bad(RECEIPT_FAULT_FORMAT, LINES + 1, LINES + 1);
}

TEST(verify_without_a_key_cannot_tell_but_sees_a_broken_chain)
{
	static const struct receipt_keys none;

	make_chain();
	CHECK_INT(fixture_verify_with(&none, false).verdict, RECEIPT_CANNOT_TELL);
	write_order("12456");
	CHECK_INT(fixture_verify_with(&none, false).verdict, RECEIPT_INVALID);
}

TEST(verify_with_a_foreign_key_cannot_tell)
{
	struct receipt_keys keys = { .n = 1 };

	make_chain();
	keys.raw[0][0] = 9; /* a point of the curve, but nobody's key */
	struct receipt_check check = fixture_verify_with(&keys, false);
	CHECK_INT(check.verdict, RECEIPT_CANNOT_TELL);
	CHECK_STR(receipt_fault_name(check.fault), "key");
}

TEST(verify_change_of_key_in_the_middle_is_bad)
{
	make_chain();
	write_order("123");
	CHECK(rename(fixture_path("keys/receipt.pub"), fixture_path("keys/old.pub")) == 0);
	CHECK(unlink(fixture_path("keys/receipt.key")) == 0);
	fixture_append_many(1);
	CHECK(rename(fixture_path("keys/old.pub"), fixture_path("keys/receipt.pub")) == 0);
	check_first_bad(RECEIPT_FAULT_KEY, 4, 4);
}

TEST(verify_two_trusted_keys_may_share_a_chain)
{
	struct receipt_keys keys = { 0 };
	struct err err = { 0 };

	make_chain();
	CHECK_INT(receipt_keys_add_file(&keys, fixture_path(RECEIPT_PUBLIC_KEY), &err), 0);
	CHECK(unlink(fixture_path("keys/receipt.pub")) == 0);
	CHECK(unlink(fixture_path("keys/receipt.key")) == 0);
	fixture_append_many(2);
	CHECK_INT(receipt_keys_add_file(&keys, fixture_path(RECEIPT_PUBLIC_KEY), &err), 0);
	CHECK_INT((long long)keys.n, 2);
	CHECK_INT(fixture_verify_with(&keys, false).verdict, RECEIPT_VALID);
}

TEST(verify_part_of_a_chain_only_when_asked)
{
	struct receipt_keys keys = { 0 };
	struct err err = { 0 };

	make_chain();
	CHECK_INT(receipt_keys_add_file(&keys, fixture_path(RECEIPT_PUBLIC_KEY), &err), 0);
	write_order("345");
	struct receipt_check check = fixture_verify_with(&keys, true);
	CHECK_INT(check.verdict, RECEIPT_VALID);
	CHECK_INT((long long)check.first_seq, 3);
	CHECK_INT((long long)check.last_seq, 5);
	write_order("346");
	check = fixture_verify_with(&keys, true);
	CHECK_INT(check.verdict, RECEIPT_INVALID);
	CHECK_INT((long long)check.seq, 5);
}

TEST(verify_public_key_must_be_one)
{
	struct receipt_keys keys = { 0 };
	struct err err = { 0 };

	make_chain();
	CHECK(receipt_keys_add_file(&keys, fixture_path("no.pub"), &err) == -ENOENT);
	CHECK(receipt_keys_add_file(&keys, fixture_path(RECEIPT_CHAIN), &err) == -EINVAL);
	CHECK(strstr(err.text, "Ed25519") != NULL);
	CHECK(receipt_keys_add_file(&keys, fixture_path("keys/receipt.key"), &err) < 0);
	CHECK_INT((long long)keys.n, 0);
}
