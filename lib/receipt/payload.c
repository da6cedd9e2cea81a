/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/payload.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "receipt/statement.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define SUBJECT_NAME_MAX 300

/* How a statement of ours begins, up to its place. */
#define OPENING                                                                                    \
	"{\"_type\":\"" STATEMENT_TYPE "\",\"predicateType\":\"" RECEIPT_PREDICATE_TYPE            \
	"\",\"predicate\":{\"id\":\""

/* What the library says itself; the caller's facts must not contradict it. */
static const char *const own_fields[] = { "id", "seq", "prev", "time", "boot_us" };

/* By hand, because gmtime() reads the time zone from disk first.  The calendar is counted in years
 * that begin in March, so that the leap day is the last. */
static json_t *time_now(void)
{
	int64_t ms = clock_ns(CLOCK_REALTIME) / 1000000;
	int64_t second = ms / 1000 % 86400, day = ms / 86400000 + 719468;
	int64_t era = day / 146097, of_era = day % 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153;
	char text[40];

	day = of_year - (153 * month + 2) / 5 + 1;
	month += month < 10 ? 3 : -9;
	year += era * 400 + (month <= 2);
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)year, (int)month,
		 (int)day, (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60),
		 (int)(ms % 1000));
	return json_string(text);
}

static json_t *build_predicate(const struct payload_place *place, const json_t *facts)
{
	json_t *predicate =
		json_pack("{s:s, s:I, s:s, s:o, s:I}", "id", place->id, "seq",
			  (json_int_t)place->seq, "prev", place->prev, "time", time_now(),
			  "boot_us", (json_int_t)(clock_ns(CLOCK_BOOTTIME) / 1000));

	if (predicate && json_object_update(predicate, (json_t *)facts) < 0) {
		json_decref(predicate);
		return NULL;
	}
	return predicate;
}

static json_t *build_subjects(const struct receipt_subject *subjects, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < n; i++) {
		const char *name = subjects[i].name;
		json_t *one = json_pack("{s:o, s:{s:s}}", "name",
					statement_text(name, strlen(name), SUBJECT_NAME_MAX),
					"digest", "sha256", subjects[i].sha256);
		if (json_array_append_new(list, one) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static int check_facts(const json_t *predicate, const struct receipt_subject *subjects, size_t n,
		       struct err *err)
{
	if (!json_is_object(predicate))
		return err_make(err, ERR_INVALID, "the predicate of a receipt is not an object");
	for (size_t i = 0; i < ARRAY_LEN(own_fields); i++)
		if (json_object_get(predicate, own_fields[i]))
			return err_make(err, ERR_INVALID, "the predicate already has '%s'",
					own_fields[i]);
	for (size_t i = 0; i < n; i++)
		if (!digest_is_hex(subjects[i].sha256))
			return err_make(err, ERR_INVALID,
					"the digest of subject %zu is not 64 hex digits", i);
	return 0;
}

int payload_build(const struct payload_place *place, const json_t *predicate,
		  const struct receipt_subject *subjects, size_t n_subjects, char *ret_bytes,
		  size_t size, struct err *err)
{
	int r = check_facts(predicate, subjects, n_subjects, err);
	if (r < 0)
		return r;
	/* The place comes first, where payload_peek() finds it. */
	json_t *statement =
		json_pack("{s:s, s:s, s:o, s:o}", "_type", STATEMENT_TYPE, "predicateType",
			  RECEIPT_PREDICATE_TYPE, "predicate", build_predicate(place, predicate),
			  "subject", build_subjects(subjects, n_subjects));
	if (!statement)
		return err_errno(err, ENOMEM, "write a receipt");
	size_t len = json_dumpb(statement, ret_bytes, size, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(statement);
	if (len == 0)
		return err_errno(err, ENOMEM, "write a receipt");
	if (len > size)
		return err_make(err, ERR_LIMIT, "the receipt would be %zu bytes, over %zu", len,
				size);
	return (int)len;
}

static int no_receipt(struct err *err, const char *why)
{
	return err_make(err, ERR_PROTOCOL, "%s", why);
}

static bool is_text(const json_t *value, const char *want)
{
	return json_is_string(value) && strcmp(json_string_value(value), want) == 0;
}

static int find_place(const json_t *statement, struct payload_place *ret_place, struct err *err)
{
	const json_t *predicate = json_object_get(statement, "predicate");
	const char *id = json_string_value(json_object_get(predicate, "id"));
	const char *prev = json_string_value(json_object_get(predicate, "prev"));
	json_int_t seq = json_integer_value(json_object_get(predicate, "seq"));

	if (!is_text(json_object_get(statement, "_type"), STATEMENT_TYPE))
		return no_receipt(err, "the payload is not an in-toto statement");
	if (!is_text(json_object_get(statement, "predicateType"), RECEIPT_PREDICATE_TYPE))
		return no_receipt(err, "the statement is not of type " RECEIPT_PREDICATE_TYPE);
	if (!json_is_array(json_object_get(statement, "subject")))
		return no_receipt(err, "the statement has no list of subjects");
	if (!id || !id_is_valid(id, ID_RECEIPT))
		return no_receipt(err, "the statement has no valid id");
	if (seq < 1)
		return no_receipt(err, "the statement has no valid seq");
	if (!prev || !digest_is_hex(prev))
		return no_receipt(err, "the statement has no valid prev");
	memcpy(ret_place->id, id, sizeof(ret_place->id));
	memcpy(ret_place->prev, prev, sizeof(ret_place->prev));
	ret_place->seq = (uint64_t)seq;
	return 0;
}

int payload_parse(const void *bytes, size_t len, struct payload_place *ret_place,
		  json_t **ret_statement, struct err *err)
{
	json_t *statement = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, NULL);

	if (!statement)
		return no_receipt(err, "the payload is not JSON");
	int r = find_place(statement, ret_place, err);
	if (r == 0 && ret_statement)
		*ret_statement = json_incref(statement);
	json_decref(statement);
	return r;
}

bool payload_peek(const void *bytes, size_t len, struct payload_place *ret_place)
{
	char head[sizeof(OPENING) + 192];
	struct payload_place place;
	int end = 0;

	size_t n = len < sizeof(head) - 1 ? len : sizeof(head) - 1;
	memcpy(head, bytes, n);
	head[n] = '\0';
	if (strncmp(head, OPENING, strlen(OPENING)) != 0)
		return false;
	if (sscanf(head + strlen(OPENING),
		   "%27[a-z2-7]\",\"seq\":%18" SCNu64 ",\"prev\":\"%64[0-9a-f]\"%n", place.id,
		   &place.seq, place.prev, &end) != 3 ||
	    end == 0 || !id_is_valid(place.id, ID_RECEIPT) || place.seq == 0 ||
	    !digest_is_hex(place.prev))
		return false;
	*ret_place = place;
	return true;
}
