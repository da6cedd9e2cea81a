/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt_fixture.h"

#include "receipt/base64.h"
#include "receipt/chain_lines.h"
#include "receipt/envelope.h"
#include "receipt/payload.h"
#include "receipt/statement.h"

static void check_text(const char *bytes, size_t len, size_t max, const char *want)
{
	json_t *text = statement_text(bytes, len, max);

	CHECK(text != NULL);
	CHECK_STR(json_string_value(text), want);
	json_decref(text);
}

TEST(statement_text_keeps_what_can_be_read)
{
	check_text("", 0, 100, "");
	check_text("report (1).csv", 14, 100, "report (1).csv");
	check_text("\xc3\xa9t\xc3\xa9 \xf0\x9f\x90\x9a", 10, 100,
		   "\xc3\xa9t\xc3\xa9 \xf0\x9f\x90\x9a");
}

TEST(statement_text_escapes_what_could_forge_or_move_the_cursor)
{
	check_text("a\n{\"seq\":1}", 11, 100, "a\\x0a{\"seq\":1}");
	check_text("\x1b[2J\x7f\0", 6, 100, "\\x1b[2J\\u{7f}\\x00");
	check_text("\xe2\x80\xa8\xe2\x80\xae\xc2\x9b", 8, 100, "\\u{2028}\\u{202e}\\u{9b}");
	check_text("\\n", 2, 100, "\\\\n");
	check_text("\xf3\xa0\x80\x81", 4, 100, "\\u{e0001}");
}

TEST(statement_text_takes_bytes_that_are_not_utf8)
{
	check_text("\xff\xc0\x80\xed\xa0\x80\xe2\x82", 8, 100,
		   "\\xff\\xc0\\x80\\xed\\xa0\\x80\\xe2\\x82");
	check_text("\xf4\x90\x80\x80", 4, 100, "\\xf4\\x90\\x80\\x80");
	check_text("\xc3", 1, 100, "\\xc3");
}

TEST(statement_text_says_how_much_was_cut)
{
	check_text("aaaaaaaaaabbbbb", 15, 10, "aaaaaaaaaa\xe2\x80\xa6(+5 bytes)");
	check_text("aaaaaaaa\n\n", 10, 10, "aaaaaaaa\xe2\x80\xa6(+2 bytes)");
}

TEST(statement_text_is_never_longer_in_the_receipt_than_allowed)
{
	static const char *const hostile[] = { "\n",
					       "\\",
					       "\"",
					       "\xff",
					       "\xc3\xa9",
					       "\xe2\x80\xa8",
					       "\xe4\xb8\xad",
					       "\xf0\x9f\x90\x9a",
					       "\xf3\xa0\x80\x81" };
	char bytes[4000];

	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		size_t n = strlen(hostile[i]), len = sizeof(bytes) / n * n;
		for (size_t at = 0; at < len; at++)
			bytes[at] = hostile[i][at % n];
		json_t *text = statement_text(bytes, len, 1000);
		size_t size = json_dumpb(text, NULL, 0, JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
		/* Two quotes, and what is said about the rest. */
		if (size > 1000 + 2 + 24 || size < 980)
			END(EXIT_FAILURE, "%zu: %zu bytes", i, size);
		json_decref(text);
	}
}

TEST(statement_list_that_fits_is_left_alone)
{
	json_t *object = json_pack("{s:[s,s]}", "files", "a", "b");

	CHECK_INT(statement_cap_list(object, "files", 100), 0);
	CHECK_INT(statement_cap_list(object, "absent", 100), 0);
	CHECK_INT((long long)json_object_size(object), 1);
	CHECK_INT((long long)json_array_size(json_object_get(object, "files")), 2);
	json_decref(object);
}

TEST(statement_list_that_is_cut_stays_provable)
{
	json_t *object = json_pack("{s:[s,s,s]}", "files", "aa", "bb", "cc");
	char want[DIGEST_HEX_SIZE];

	digest_of("[\"aa\",\"bb\",\"cc\"]", 16, want);
	CHECK_INT(statement_cap_list(object, "files", 12), 0);
	CHECK_INT((long long)json_array_size(json_object_get(object, "files")), 2);
	CHECK_INT(json_integer_value(json_object_get(object, "files_omitted")), 1);
	CHECK_STR(json_string_value(json_object_get(object, "files_sha256")), want);
	json_decref(object);
}

TEST(payload_hostile_names_stay_one_line_and_one_record)
{
	static const char *const names[] = {
		"x\n{\"payloadType\":\"application/vnd.in-toto+json\"}",
		"\xe2\x80\xa8 line",
		"\x1b]0;t\a",
		"\xff\xfe",
		"\",\"seq\":99,\"x\":\"",
	};
	struct receipt_subject subjects[ARRAY_LEN(names)];
	struct receipt receipt;
	struct err err = { 0 };

	fixture_state();
	struct receipts *receipts = fixture_open();
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		subjects[i] = (struct receipt_subject){ names[i], DIGEST_ZERO };
	json_t *predicate = json_object();
	char *huge = malloc(1 << 20);
	memset(huge, '\n', 1 << 20);
	json_object_set_new(predicate, "command", statement_text(huge, 1 << 20, 4096));
	json_object_set_new(predicate, "\xe2\x80\xa8", json_string("\n\x1b\xe2\x80\xa8"));
	CHECK_INT(receipt_append(receipts, predicate, subjects, ARRAY_LEN(names), &receipt, &err),
		  0);
	free(huge);
	json_decref(predicate);

	for (const char *c = receipt.envelope; *c; c++)
		CHECK(*c >= ' ' && *c < 0x7f);
	static struct envelope envelope;
	CHECK_INT(envelope_parse(receipt.envelope, strlen(receipt.envelope), &envelope, &err), 0);
	for (size_t i = 0; i < envelope.payload_len; i++)
		CHECK(envelope.payload[i] >= ' ' && envelope.payload[i] < 0x7f);
	struct payload_place place;
	CHECK_INT(payload_parse(envelope.payload, envelope.payload_len, &place, NULL, &err), 0);
	CHECK_INT((long long)place.seq, 1);
	CHECK_INT((long long)fixture_verify().good, 1);
	receipt_finish(&receipt);
	receipts_close(receipts);
}

TEST(payload_parse_refuses_what_is_no_receipt)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"_type\":\"https://in-toto.io/Statement/v1\"}",
		"{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[],"
		"\"predicateType\":\"urn:cay:receipt:v1\",\"predicate\":{\"seq\":1}}",
		"{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[],"
		"\"predicateType\":\"urn:cay:receipt:v1\",\"predicate\":[]}",
		"{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[],"
		"\"predicateType\":\"urn:cay:receipt:v1\",\"predicate\":"
		"{\"id\":\"raaaaaaaaaaaaaaaaaaaaaaaaaa\",\"seq\":0,\"prev\":\"" DIGEST_ZERO "\"}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct payload_place place;
		struct err err = { 0 };
		CHECK_INT(payload_parse(bad[i], strlen(bad[i]), &place, NULL, &err), -EPROTO);
	}
}

TEST(payload_peek_agrees_with_parse_or_says_nothing)
{
	struct receipt receipt;
	struct payload_place peeked, parsed;
	static struct envelope envelope;
	struct err err = { 0 };

	fixture_state();
	struct receipts *receipts = fixture_open();
	CHECK_INT(fixture_append(receipts, 10, &receipt, &err), 0);
	CHECK_INT(envelope_parse(receipt.envelope, strlen(receipt.envelope), &envelope, &err), 0);
	CHECK(payload_peek(envelope.payload, envelope.payload_len, &peeked));
	CHECK_INT(payload_parse(envelope.payload, envelope.payload_len, &parsed, NULL, &err), 0);
	CHECK_STR(peeked.id, parsed.id);
	CHECK_STR(peeked.prev, parsed.prev);
	CHECK_INT((long long)peeked.seq, (long long)parsed.seq);
	for (size_t len = 0; len < 200; len += 9)
		CHECK(!payload_peek(envelope.payload, len, &peeked));
	receipt_finish(&receipt);
	receipts_close(receipts);
}

TEST(envelope_may_be_written_by_another_json_library)
{
	struct receipt receipt;
	static struct envelope own, other;
	struct err err = { 0 };

	fixture_state();
	struct receipts *receipts = fixture_open();
	CHECK_INT(fixture_append(receipts, 10, &receipt, &err), 0);
	CHECK_INT(envelope_parse(receipt.envelope, strlen(receipt.envelope), &own, &err), 0);
	json_t *root = json_loads(receipt.envelope, 0, NULL);
	auto_free char *text = json_dumps(root, JSON_SORT_KEYS);
	CHECK(strcmp(text, receipt.envelope) != 0);
	CHECK_INT(envelope_parse(text, strlen(text), &other, &err), 0);
	CHECK_STR(own.sha256, other.sha256);
	CHECK(memcmp(own.signature, other.signature, sizeof(own.signature)) == 0);
	json_decref(root);
	receipt_finish(&receipt);
	receipts_close(receipts);
}

TEST(base64_is_that_of_the_standard)
{
	static const char *const pairs[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
	};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		char text[16] = "";
		uint8_t bytes[16];
		size_t len = strlen(pairs[i][0]);
		base64_encode((const uint8_t *)pairs[i][0], len, text);
		CHECK_STR(text, pairs[i][1]);
		CHECK_INT(base64_decode(text, strlen(text), bytes, sizeof(bytes)), (long long)len);
		CHECK(memcmp(bytes, pairs[i][0], len) == 0);
	}
}

TEST(base64_refuses_a_second_spelling)
{
	static const char *const bad[] = { "Zh==", "Zm9=",   "Zg=",  "Zg",   "Zg==Zg==", "Z===",
					   "====", "Zm9v\n", "Zm 9", "Zm-_", "=m9v",     "Zm=v" };
	uint8_t bytes[16];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (base64_decode(bad[i], strlen(bad[i]), bytes, sizeof(bytes)) != -EINVAL)
			END(EXIT_FAILURE, "'%s' was accepted", bad[i]);
	CHECK_INT(base64_decode("Zm9vYmFy", 8, bytes, 5), -EMSGSIZE);
}

TEST(digest_streamed_equals_at_once)
{
	char once[DIGEST_HEX_SIZE], streamed[DIGEST_HEX_SIZE];
	struct digest digest;

	digest_of("abc", 3, once);
	CHECK_STR(once, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	digest_init(&digest);
	digest_update(&digest, "a", 1);
	digest_update(&digest, "", 0);
	digest_update(&digest, "bc", 2);
	digest_final(&digest, streamed);
	CHECK_STR(streamed, once);
	CHECK(digest_is_hex(once));
	once[3] = 'A';
	CHECK(!digest_is_hex(once) && !digest_is_hex("") && !digest_is_hex(DIGEST_ZERO "0"));
}

TEST(lines_seek_last_finds_the_beginning)
{
	struct err err = { 0 };
	const char *line;
	size_t len;
	static struct chain_lines lines;

	fixture_state();
	CHECK(mkdir(fixture_path("receipts"), 0700) == 0);
	fixture_write("one\ntwo\nthree\ntorn", 18);
	auto_close int fd = open(fixture_path(RECEIPT_CHAIN), O_RDONLY);
	CHECK_INT(chain_lines_seek_last(fd, 2, &err), 0);
	chain_lines_init(&lines, fd);
	CHECK(chain_lines_next(&lines, &line, &len, &err) == 1 && len == 3 &&
	      !memcmp(line, "two", 3));
	CHECK(chain_lines_next(&lines, &line, &len, &err) == 1 && len == 5 &&
	      !memcmp(line, "three", 5));
	CHECK_INT(chain_lines_next(&lines, &line, &len, &err), 0);
	CHECK_INT((long long)lines.torn_bytes, 4);
	CHECK_INT(chain_lines_seek_last(fd, 99, &err), 0);
	CHECK_INT(lseek(fd, 0, SEEK_CUR), 0);
}

TEST(lines_too_long_line_is_one_line)
{
	struct err err = { 0 };
	const char *line;
	size_t len;
	static struct chain_lines lines;
	size_t size = 3 * RECEIPT_LINE_MAX + 5;
	auto_free char *text = malloc(size);

	fixture_state();
	CHECK(mkdir(fixture_path("receipts"), 0700) == 0);
	memset(text, 'x', size);
	memcpy(text + size - 3, "\ny\n", 3);
	fixture_write(text, size);
	auto_close int fd = open(fixture_path(RECEIPT_CHAIN), O_RDONLY);
	chain_lines_init(&lines, fd);
	CHECK(chain_lines_next(&lines, &line, &len, &err) == 1 && len == RECEIPT_LINE_MAX);
	CHECK(chain_lines_next(&lines, &line, &len, &err) == 1 && len == 1 && line[0] == 'y');
	CHECK_INT(chain_lines_next(&lines, &line, &len, &err), 0);
}
