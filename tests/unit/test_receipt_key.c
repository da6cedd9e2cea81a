/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt_fixture.h"

#include "receipt/key.h"
#include "receipt/pem.h"

/* RFC 8032, 7.1, test 2: secret, public, message 0x72. */
static const uint8_t rfc_seed[] = { 0x4c, 0xcd, 0x08, 0x9b, 0x28, 0xff, 0x96, 0xda,
				    0x9d, 0xb6, 0xc3, 0x46, 0xec, 0x11, 0x4e, 0x0f,
				    0x5b, 0x8a, 0x31, 0x9f, 0x35, 0xab, 0xa6, 0x24,
				    0xda, 0x8c, 0xf6, 0xed, 0x4f, 0xb8, 0xa6, 0xfb };
static const uint8_t rfc_public[] = { 0x3d, 0x40, 0x17, 0xc3, 0xe8, 0x43, 0x89, 0x5a,
				      0x92, 0xb7, 0x0a, 0xa7, 0x4d, 0x1b, 0x7e, 0xbc,
				      0x9c, 0x98, 0x2c, 0xcf, 0x2e, 0xc4, 0x96, 0x8c,
				      0xc0, 0xcd, 0x55, 0xf1, 0x2a, 0xf4, 0x66, 0x0c };
static const uint8_t rfc_signature_start[] = { 0x92, 0xa0, 0x09, 0xa9, 0xf0, 0xd4, 0xca, 0xb8 };

static void put_key(const void *bytes, size_t len, mode_t mode)
{
	fixture_state();
	CHECK(mkdir(fixture_path("keys"), 0700) == 0);
	auto_close int fd = open(fixture_path("keys/receipt.key"), O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0 && fchmod(fd, mode) == 0);
	CHECK_INT(write(fd, bytes, len), (long long)len);
}

static void check_refused(const char *why)
{
	struct key *key = NULL;
	struct err err = { 0 };

	CHECK(key_open(fixture_dir, &key, &err) < 0);
	if (!strstr(err.text, why))
		END(EXIT_FAILURE, "got '%s', want '%s'", err.text, why);
}

TEST(key_signs_as_the_standard_says)
{
	struct key *key = NULL, *public = NULL;
	struct err err = { 0 };
	uint8_t signature[KEY_SIGNATURE_SIZE];
	char id[DIGEST_HEX_SIZE];

	put_key(rfc_seed, sizeof(rfc_seed), 0600);
	CHECK_INT(key_open(fixture_dir, &key, &err), 0);
	digest_of(rfc_public, sizeof(rfc_public), id);
	CHECK_STR(key_id(key), id);
	CHECK_INT(key_sign(key, "\x72", 1, signature, &err), 0);
	CHECK(memcmp(signature, rfc_signature_start, sizeof(rfc_signature_start)) == 0);

	CHECK_INT(key_open_public(rfc_public, &public, &err), 0);
	CHECK(key_has_signed(public, "\x72", 1, signature));
	CHECK(!key_has_signed(public, "\x73", 1, signature));
	CHECK(!key_has_signed(public, "", 0, signature));
	signature[0] ^= 1;
	CHECK(!key_has_signed(public, "\x72", 1, signature));
	key_close(public);
	key_close(key);
}

TEST(key_is_the_same_for_all_who_come_first_together)
{
	char first[DIGEST_HEX_SIZE] = "";
	int results[2];

	fixture_state();
	CHECK(pipe(results) == 0);
	for (int i = 0; i < 16; i++) {
		if (fork() == 0) {
			struct key *key = NULL;
			struct err err = { 0 };
			if (key_open(fixture_dir, &key, &err) < 0)
				_exit(1);
			CHECK(write(results[1], key_id(key), DIGEST_HEX_SIZE) == DIGEST_HEX_SIZE);
			_exit(0);
		}
	}
	for (int i = 0; i < 16; i++) {
		char id[DIGEST_HEX_SIZE];
		int status;
		CHECK(wait(&status) > 0 && status == 0);
		CHECK(read(results[0], id, sizeof(id)) == (ssize_t)sizeof(id));
		if (i == 0)
			memcpy(first, id, sizeof(id));
		CHECK_STR(id, first);
	}
	CHECK(access(fixture_path("keys/receipt.key.new"), F_OK) < 0);
	CHECK(access(fixture_path("keys/receipt.pub.new"), F_OK) < 0);
}

TEST(key_that_others_can_read_is_refused)
{
	put_key(rfc_seed, sizeof(rfc_seed), 0640);
	check_refused("chmod 600");
}

TEST(key_of_another_size_is_refused_and_kept)
{
	struct stat st;

	put_key(rfc_seed, 31, 0600);
	check_refused("not 32 bytes");
	CHECK(stat(fixture_path("keys/receipt.key"), &st) == 0 && st.st_size == 31);
}

TEST(key_with_more_than_a_key_is_refused)
{
	uint8_t more[40] = { 0 };

	put_key(more, sizeof(more), 0600);
	check_refused("not 32 bytes");
}

TEST(key_of_another_user_is_refused)
{
	if (geteuid() != 0)
		SKIP("needs root to give a file away");
	put_key(rfc_seed, sizeof(rfc_seed), 0600);
	CHECK(chown(fixture_path("keys/receipt.key"), 12345, 0) == 0);
	check_refused("of this user");
}

TEST(key_directory_and_fifo_are_not_keys)
{
	fixture_state();
	CHECK(mkdir(fixture_path("keys"), 0700) == 0);
	CHECK(mkfifo(fixture_path("keys/receipt.key"), 0600) == 0);
	check_refused("not a file");
	CHECK(unlink(fixture_path("keys/receipt.key")) == 0);
	CHECK(mkdir(fixture_path("keys/receipt.key"), 0700) == 0);
	check_refused("not a file");
}

TEST(key_leftover_of_a_killed_maker_is_no_obstacle)
{
	fixture_state();
	CHECK(mkdir(fixture_path("keys"), 0700) == 0);
	close(open(fixture_path("keys/receipt.key.new"), O_WRONLY | O_CREAT, 0600));
	struct receipts *receipts = fixture_open();
	receipts_close(receipts);
}

TEST(key_public_file_comes_back_when_it_was_removed)
{
	fixture_state();
	fixture_append_many(1);
	CHECK(unlink(fixture_path(RECEIPT_PUBLIC_KEY)) == 0);
	fixture_append_many(1);
	CHECK_INT(fixture_verify().verdict, RECEIPT_VALID);
}

TEST(pem_reads_back_what_it_writes)
{
	char text[2 * PEM_TEXT_SIZE];
	uint8_t raw[PEM_KEY_SIZE];
	const char *at = text;

	size_t n = pem_encode(rfc_public, text);
	pem_encode(rfc_seed, text + n);
	CHECK_INT(pem_next(&at, raw), 1);
	CHECK(memcmp(raw, rfc_public, sizeof(raw)) == 0);
	CHECK_INT(pem_next(&at, raw), 1);
	CHECK(memcmp(raw, rfc_seed, sizeof(raw)) == 0);
	CHECK_INT(pem_next(&at, raw), 0);
}

TEST(pem_refuses_other_keys_and_damage)
{
	static const char *const bad[] = {
		"-----BEGIN PUBLIC KEY-----\n",
		"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n",
		"-----BEGIN PUBLIC "
		"KEY-----\nMCowBQYDK2VuAyEAPUAXw+hDiVqSt7CnTRt+vJyYLM8uxJaMwM1V8Sr0"
		"Zgw=\n-----END PUBLIC KEY-----\n", /* X25519 */
		"-----BEGIN PUBLIC "
		"KEY-----\nMCowBQYDK2VwAyEAPUAXw+hDiVqSt7CnTRt+vJyYLM8uxJaMwM1V8Sr0"
		"Zg\n-----END PUBLIC KEY-----\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *at = bad[i];
		uint8_t raw[PEM_KEY_SIZE];
		CHECK_INT(pem_next(&at, raw), -EINVAL);
	}
}
