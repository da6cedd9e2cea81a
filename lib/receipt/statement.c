/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/statement.h"

#include "base/auto.h"
#include "receipt/digest.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for what is said about the rest that was cut. */
#define CUT_SIZE 48

/* Characters that are there but not seen, or that turn, join or break the text around them. */
static const struct {
	uint32_t from, to;
} unseen[] = {
	{ 0x7f, 0x9f },     { 0xad, 0xad },     { 0x61c, 0x61c },     { 0x115f, 0x1160 },
	{ 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f },
	{ 0x3164, 0x3164 }, { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },
	{ 0xfff0, 0xfffb }, { 0xfffe, 0xffff }, { 0xe0000, 0xe0fff },
};

static bool is_unseen(uint32_t point)
{
	for (size_t i = 0; i < ARRAY_LEN(unseen); i++)
		if (point >= unseen[i].from && point <= unseen[i].to)
			return true;
	return point < ' ' || (point & 0xfffe) == 0xfffe;
}

/* The character at the beginning of the bytes; its length, or 0 when it is not UTF-8. */
static size_t next_point(const uint8_t *at, size_t left, uint32_t *ret_point)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : 4;
	uint32_t point = len == 1 ? at[0] : at[0] & (0x7fu >> len);

	if (len > left || (len == 4 && at[0] >> 3 != 30))
		return 0;
	for (size_t i = 1; i < len; i++) {
		if (at[i] >> 6 != 2)
			return 0;
		point = point << 6 | (at[i] & 63);
	}
	if (point < least[len] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 0;
	*ret_point = point;
	return len;
}

/* How one character is written; returns how many bytes of input it was. */
static size_t escape(const uint8_t *at, size_t left, char ret_text[static 16])
{
	uint32_t point = 0;
	size_t len = next_point(at, left, &point);

	if (len == 0 || point < ' ') {
		snprintf(ret_text, 16, "\\x%02x", at[0]);
		return 1;
	}
	if (point == '\\') {
		memcpy(ret_text, "\\\\", 3);
	} else if (is_unseen(point)) {
		snprintf(ret_text, 16, "\\u{%x}", point);
	} else {
		memcpy(ret_text, at, len);
		ret_text[len] = '\0';
	}
	return len;
}

/* How long the text is in JSON that is ASCII. */
static size_t json_cost(const char *text)
{
	size_t cost = 0;

	for (const uint8_t *c = (const uint8_t *)text; *c; c++) {
		if (*c == '\\' || *c == '"')
			cost += 2;
		else if (*c < 0x80)
			cost += 1;
		else if (*c >= 0xc0) /* the first byte of a character; the others are free */
			cost += *c >= 0xf0 ? 12 : 6;
	}
	return cost;
}

json_t *statement_text(const void *bytes, size_t len, size_t max_bytes)
{
	const uint8_t *at = bytes;
	size_t size = len > max_bytes / 10 ? max_bytes : len * 10; /* 1 byte is 10 at most */
	size_t used = 0, done = 0, cost = 0;

	auto_free char *text = malloc(size + CUT_SIZE);
	if (!text)
		return NULL;
	while (done < len) {
		char one[16];
		size_t n = escape(at + done, len - done, one);
		cost += json_cost(one);
		if (cost > max_bytes)
			break;
		used = (size_t)(stpcpy(text + used, one) - text);
		done += n;
	}
	if (done < len)
		used += (size_t)snprintf(text + used, CUT_SIZE, "\u2026(+%zu bytes)", len - done);
	return json_stringn(text, used);
}

/* The number of entries from the front whose JSON fits in max_bytes. */
static size_t count_fitting(const json_t *list, size_t max_bytes)
{
	size_t used = 2, i = 0;

	for (; i < json_array_size(list); i++) {
		used += 1 + json_dumpb(json_array_get(list, i), NULL, 0,
				       JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
		if (used > max_bytes)
			break;
	}
	return i;
}

static int add_to_digest(const char *bytes, size_t len, void *digest)
{
	digest_update(digest, bytes, len);
	return 0;
}

static int set_beside(json_t *object, const char *key, const char *what, json_t *value)
{
	char name[128];

	if (snprintf(name, sizeof(name), "%s_%s", key, what) >= (int)sizeof(name)) {
		json_decref(value);
		return -ENOMEM;
	}
	return json_object_set_new(object, name, value) < 0 ? -ENOMEM : 0;
}

int statement_cap_list(json_t *object, const char *key, size_t max_bytes)
{
	json_t *list = json_object_get(object, key);
	char hex[DIGEST_HEX_SIZE];
	struct digest digest;

	size_t all = json_array_size(list);
	size_t keep = count_fitting(list, max_bytes);
	if (keep == all)
		return 0;
	digest_init(&digest);
	if (json_dump_callback(list, add_to_digest, &digest, JSON_COMPACT | JSON_ENSURE_ASCII) < 0)
		return -ENOMEM;
	digest_final(&digest, hex);
	while (json_array_size(list) > keep)
		json_array_remove(list, json_array_size(list) - 1);
	int r = set_beside(object, key, "omitted", json_integer((json_int_t)(all - keep)));
	return r < 0 ? r : set_beside(object, key, "sha256", json_string(hex));
}
