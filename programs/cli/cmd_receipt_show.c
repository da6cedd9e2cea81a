/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_receipt_show.c - `cay receipt ls` and `show`: what receipts say, verified or not. */
#include "cmd_receipt.h"

#include "base/auto.h"
#include "base/err.h"
#include "cli.h"
#include "receipt/chain_lines.h"
#include "receipt/envelope.h"
#include "receipt/payload.h"
#include "receipt/statement.h"
#include "say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LS_DEFAULT 20

/* One receipt of a file, read but not yet believed. */
struct entry {
	uint64_t line;
	struct envelope envelope;
	struct payload_place place;
	json_t *statement; /* owned */
	char *text;        /* owned; the line */
};

static void entry_finish(struct entry *entry)
{
	json_decref(entry->statement);
	free(entry->text);
	entry->statement = NULL;
	entry->text = NULL;
}

static int entry_read(struct entry *ret_entry, const char *line, size_t len, struct err *err)
{
	struct entry *e = ret_entry;

	int r = envelope_parse(line, len, &e->envelope, err);
	if (r == 0)
		r = payload_parse(e->envelope.payload, e->envelope.payload_len, &e->place,
				  &e->statement, err);
	if (r < 0)
		return r;
	e->text = strndup(line, len);
	return e->text ? 0 : err_errno(err, ENOMEM, "read a receipt");
}

static json_t *short_text(const json_t *value, size_t max_bytes)
{
	if (!json_is_string(value))
		return json_string("-");
	return statement_text(json_string_value(value), json_string_length(value), max_bytes);
}

/* The runtime, else the program that was named. */
static json_t *what(const json_t *predicate)
{
	const json_t *runtime = json_object_get(json_object_get(predicate, "runtime"), "name");
	const json_t *shown = json_object_get(json_object_get(predicate, "argv"), "shown");

	return short_text(runtime ? runtime : json_array_get(shown, 0), 60);
}

static json_t *summary(const struct entry *e)
{
	const json_t *predicate = json_object_get(e->statement, "predicate");
	const json_t *exit_code = json_object_get(predicate, "exit_code");

	return json_pack("{s:I, s:s, s:o, s:o, s:o, s:o}", "seq", (json_int_t)e->place.seq, "id",
			 e->place.id, "time", short_text(json_object_get(predicate, "time"), 32),
			 "cause", short_text(json_object_get(predicate, "cause"), 20), "exit_code",
			 json_is_integer(exit_code) ? json_incref((json_t *)exit_code)
						    : json_null(),
			 "what", what(predicate));
}

static const char *text_in(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "-";
}

static void print_row(const json_t *row)
{
	const json_t *exit_code = json_object_get(row, "exit_code");
	char code[24] = "-";

	if (json_is_integer(exit_code))
		snprintf(code, sizeof(code), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(exit_code));
	printf("%6" JSON_INTEGER_FORMAT "  %-24s  %s  %-14s  %4s  %s\n",
	       json_integer_value(json_object_get(row, "seq")), text_in(row, "time"),
	       text_in(row, "id"), text_in(row, "cause"), code, text_in(row, "what"));
}

/* Lists from the descriptor's offset on, into `list` or to stdout.  1: some line was bad. */
static int list_lines(int fd, json_t *list, struct err *err)
{
	static struct chain_lines lines;
	static struct entry e;
	const char *line;
	size_t len;
	int r, bad = 0;

	chain_lines_init(&lines, fd);
	while ((r = chain_lines_next(&lines, &line, &len, err)) > 0) {
		struct err why;
		bool good = entry_read(&e, line, len, &why) == 0;
		json_t *row = good ? summary(&e) : json_pack("{s:s}", "damaged", why.text);
		bad |= !good;
		entry_finish(&e);
		if (list) {
			if (json_array_append_new(list, row) < 0)
				return err_errno(err, ENOMEM, "list the receipts");
			continue;
		}
		if (good)
			print_row(row);
		else
			printf("     ?  damaged: %s\n", why.text);
		json_decref(row);
	}
	return r < 0 ? r : bad;
}

int receipt_ls(const struct receipt_options *mine, const struct operands *operands)
{
	struct err err;

	if (operands->n > 0) {
		err_make(&err, ERR_INVALID, "`cay receipt ls` takes no operand");
		return say_failure(&err, NULL, mine->json, EXIT_USAGE);
	}
	json_t *list = mine->json ? json_array() : NULL;
	auto_close int fd = receipt_open_chain(&err);
	int r = fd == -ENOENT ? 0 : fd;
	if (fd == -ENOENT && !list)
		say("%s", err.text);
	if (fd >= 0)
		r = chain_lines_seek_last(fd, mine->n ? mine->n : LS_DEFAULT, &err);
	if (fd >= 0 && r == 0 && !list)
		printf("%6s  %-24s  %-27s  %-14s  %4s  %s\n", "SEQ", "TIME", "ID", "CAUSE", "EXIT",
		       "WHAT");
	if (fd >= 0 && r == 0)
		r = list_lines(fd, list, &err);
	if (r >= 0 && list) {
		json_t *document = json_pack("{s:O}", "receipts", list);
		receipt_print_json(document);
		json_decref(document);
	}
	json_decref(list);
	return r < 0 ? receipt_fail(&err, mine->json) : r > 0 ? EXIT_PLAIN_FAILURE : EXIT_DONE;
}

/* What `show` was asked for. */
struct wanted {
	const char *text;
	uint64_t seq; /* 0: text is the beginning of an id */
};

static bool is_wanted(const struct wanted *wanted, const struct entry *e)
{
	if (wanted->seq)
		return e->place.seq == wanted->seq;
	return strncmp(e->place.id, wanted->text, strlen(wanted->text)) == 0;
}

/* Reads all lines; lines that are no receipts are passed over. */
static int search(int fd, const struct wanted *wanted, struct entry *ret_entry, struct err *err)
{
	static struct chain_lines lines;
	static struct entry e;
	const char *line;
	size_t len;
	unsigned found = 0;
	int r;

	chain_lines_init(&lines, fd);
	for (uint64_t n = 1; (r = chain_lines_next(&lines, &line, &len, err)) > 0; n++) {
		struct err why;
		if (entry_read(&e, line, len, &why) == 0 && is_wanted(wanted, &e) && found++ == 0) {
			*ret_entry = e;
			ret_entry->line = n;
			e.statement = NULL;
			e.text = NULL;
		}
		entry_finish(&e);
	}
	if (r < 0)
		return r;
	if (found > 1)
		return err_make(err, ERR_INVALID, "%u receipts fit '%.40s'; give more of the id",
				found, wanted->text);
	if (found == 0)
		return err_make(err, ERR_NOT_FOUND, "there is no receipt '%.40s'", wanted->text);
	return 0;
}

static int find_receipt(const char *name, struct entry *ret_entry, struct err *err)
{
	struct wanted wanted = { .text = name };

	auto_close int fd = receipt_open_chain(err);
	if (fd < 0)
		return fd;
	if (strcmp(name, "last") == 0) {
		wanted.text = "r"; /* any id */
		int r = chain_lines_seek_last(fd, 1, err);
		if (r < 0)
			return r;
	} else if (strspn(name, "0123456789") == strlen(name)) {
		errno = 0;
		wanted.seq = strtoull(name, NULL, 10);
		if (errno || wanted.seq == 0)
			return err_make(err, ERR_NOT_FOUND, "there is no receipt '%.40s'", name);
	}
	int r = search(fd, &wanted, ret_entry, err);
	if (r == -ENOENT && wanted.text != name)
		return err_make(err, ERR_NOT_FOUND, "the last line of the chain is no receipt");
	return r;
}

/* Of this receipt alone; the chain is a matter of `verify`. */
static const char *signature_of(const struct entry *e, const struct receipt_keys *keys)
{
	enum receipt_verdict verdict = RECEIPT_CANNOT_TELL;
	struct err err;

	for (size_t i = 0; i < keys->n; i++) {
		struct key *key = NULL;
		if (key_open_public(keys->raw[i], &key, &err) < 0)
			continue;
		if (strcmp(key_id(key), e->envelope.key_id) == 0)
			verdict = envelope_is_signed_by(&e->envelope, key) ? RECEIPT_VALID
									   : RECEIPT_INVALID;
		key_close(key);
	}
	return receipt_verdict_name(verdict);
}

static void print_entry(const struct entry *e, const char *signature, bool json)
{
	if (json) {
		json_t *document = json_pack(
			"{s:s, s:I, s:s, s:s, s:s, s:O, s:o}", "id", e->place.id, "seq",
			(json_int_t)e->place.seq, "sha256", e->envelope.sha256, "key_id",
			e->envelope.key_id, "signature", signature, "statement", e->statement,
			"envelope", json_loads(e->text, JSON_REJECT_DUPLICATES, NULL));
		receipt_print_json(document);
		json_decref(document);
		return;
	}
	printf("receipt    %s\n", e->place.id);
	printf("seq        %" PRIu64 "\n", e->place.seq);
	printf("sha256     %s\n", e->envelope.sha256);
	printf("prev       %s\n", e->place.prev);
	printf("key        %s\n", e->envelope.key_id);
	printf("signature  %s\n\n", strcmp(signature, "cannot_tell") ? signature : "cannot tell");
	receipt_print_json(e->statement);
}

int receipt_show(const struct receipt_options *mine, const struct operands *operands)
{
	static struct entry e;
	struct receipt_keys keys = { 0 };
	struct err err;

	if (operands->n != 1 || !operands->items[0][0]) {
		err_make(&err, ERR_INVALID,
			 "say which receipt: `cay receipt show ID`, a number, or `last`");
		return say_failure(&err, NULL, mine->json, EXIT_USAGE);
	}
	int r = find_receipt(operands->items[0], &e, &err);
	if (r == 0)
		r = receipt_load_keys(&mine->keys, &keys, &err);
	if (r == 0)
		print_entry(&e, signature_of(&e, &keys), mine->json);
	entry_finish(&e);
	if (r < 0 && err.kind == ERR_INVALID)
		return say_failure(&err, NULL, mine->json, EXIT_USAGE);
	return r < 0 ? receipt_fail(&err, mine->json) : EXIT_DONE;
}
