/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/verify.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "receipt/chain_lines.h"
#include "receipt/envelope.h"
#include "receipt/key.h"
#include "receipt/payload.h"
#include "receipt/pem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(RECEIPT_PUBLIC_SIZE == KEY_SIZE && KEY_SIZE == PEM_KEY_SIZE, "one kind of key");

struct verifier {
	struct key *keys[RECEIPT_KEYS_MAX]; /* owned */
	size_t n_keys;
	bool part;
	struct receipt_check *check; /* borrowed */
	struct envelope envelope;
	struct chain_lines lines;
};

const char *receipt_verdict_name(enum receipt_verdict verdict)
{
	static const char *const names[] = { "valid", "invalid", "cannot_tell" };

	return names[verdict];
}

const char *receipt_fault_name(enum receipt_fault fault)
{
	static const char *const names[RECEIPT_FAULTS_] = {
		[RECEIPT_NO_FAULT] = "none",     [RECEIPT_FAULT_FORMAT] = "format",
		[RECEIPT_FAULT_KEY] = "key",     [RECEIPT_FAULT_SIGNATURE] = "signature",
		[RECEIPT_FAULT_ORDER] = "order", [RECEIPT_FAULT_CHAIN] = "chain",
	};

	return names[fault];
}

int receipt_keys_add_file(struct receipt_keys *keys, const char *path, struct err *err)
{
	char text[16 * 1024];
	const char *at = text;
	size_t had = keys->n;

	ssize_t len = fd_read_text_at(AT_FDCWD, path, text, sizeof(text));
	if (len < 0)
		return err_errno(err, (int)-len, "read the public key '%s'", path);
	for (;;) {
		uint8_t raw[KEY_SIZE];
		int r = pem_next(&at, raw);
		if (r < 0 || (r == 0 && keys->n == had))
			return err_make(err, ERR_INVALID,
					"'%s' is not an Ed25519 public key in PEM form", path);
		if (r == 0)
			return 0;
		if (keys->n == RECEIPT_KEYS_MAX)
			return err_make(err, ERR_LIMIT, "more than %d public keys in '%s'",
					RECEIPT_KEYS_MAX, path);
		memcpy(keys->raw[keys->n++], raw, KEY_SIZE);
	}
}

/* The first bad line; -1 so that callers can return it. */
__attribute__((format(printf, 3, 4))) static int fault(struct verifier *v, enum receipt_fault what,
						       const char *fmt, ...)
{
	va_list args;

	v->check->verdict = RECEIPT_INVALID;
	v->check->fault = what;
	va_start(args, fmt);
	vsnprintf(v->check->reason, sizeof(v->check->reason), fmt, args);
	va_end(args);
	return -1;
}

static int check_signature(struct verifier *v)
{
	const char *id = v->envelope.key_id;

	for (size_t i = 0; i < v->n_keys; i++) {
		bool is_named = strcmp(key_id(v->keys[i]), id) == 0;
		bool has_signed = envelope_is_signed_by(&v->envelope, v->keys[i]);
		if (is_named && !has_signed)
			return fault(v, RECEIPT_FAULT_SIGNATURE,
				     "the signature does not fit the statement");
		if (has_signed && !is_named)
			return fault(v, RECEIPT_FAULT_KEY,
				     "it is signed by key %.16s but names key %.16s",
				     key_id(v->keys[i]), id);
		if (has_signed)
			return 0;
	}
	if (v->n_keys == 0)
		return 0;
	fault(v, RECEIPT_FAULT_KEY, "it names key %.16s, which is not the one given", id);
	/* Before anything was proven by our key this is just another chain. */
	if (v->check->good == 0)
		v->check->verdict = RECEIPT_CANNOT_TELL;
	return -1;
}

static int check_place(struct verifier *v, const struct payload_place *place)
{
	struct receipt_check *check = v->check;

	memcpy(check->id, place->id, ID_SIZE);
	if (v->part && check->good == 0) {
		check->seq = check->first_seq = place->seq;
		return 0;
	}
	if (place->seq != check->seq)
		return fault(v, RECEIPT_FAULT_ORDER,
			     "it has seq %" PRIu64 " where %" PRIu64 " must follow", place->seq,
			     check->seq);
	if (strcmp(place->prev, check->head) != 0)
		return fault(v, RECEIPT_FAULT_CHAIN,
			     "its prev is not the hash of the receipt before it");
	return 0;
}

/* 0: good.  The signature is checked before the statement is read. */
static int check_line(struct verifier *v, const char *line, size_t len)
{
	struct payload_place place;
	struct err why;

	if (envelope_parse(line, len, &v->envelope, &why) < 0)
		return fault(v, RECEIPT_FAULT_FORMAT, "%s", why.text);
	if (check_signature(v) < 0)
		return -1;
	if (payload_parse(v->envelope.payload, v->envelope.payload_len, &place, NULL, &why) < 0)
		return fault(v, RECEIPT_FAULT_FORMAT, "%s", why.text);
	return check_place(v, &place);
}

static int check_all(struct verifier *v, struct err *err)
{
	struct receipt_check *check = v->check;
	const char *line;
	size_t len;
	int r;

	while ((r = chain_lines_next(&v->lines, &line, &len, err)) > 0) {
		check->line++;
		check->seq = check->good ? check->last_seq + 1 : v->part ? 0 : 1;
		if (check_line(v, line, len) < 0)
			return 0;
		check->good++;
		check->last_seq = check->seq;
		check->first_seq = check->last_seq - check->good + 1;
		memcpy(check->head, v->envelope.sha256, DIGEST_HEX_SIZE);
	}
	check->line = check->seq = 0;
	check->id[0] = '\0';
	check->torn_bytes = v->lines.torn_bytes;
	return r;
}

static int start(struct verifier *v, int fd, const struct receipt_keys *keys, struct err *err)
{
	chain_lines_init(&v->lines, fd);
	for (; v->n_keys < keys->n; v->n_keys++) {
		int r = key_open_public(keys->raw[v->n_keys], &v->keys[v->n_keys], err);
		if (r < 0)
			return r;
	}
	return 0;
}

int receipt_verify(int fd, const struct receipt_keys *keys, bool part,
		   struct receipt_check *ret_check, struct err *err)
{
	struct receipt_check check = { .head = DIGEST_ZERO };
	auto_free struct verifier *v = calloc(1, sizeof(*v));

	if (!v)
		return err_errno(err, ENOMEM, "verify receipts");
	v->part = part;
	v->check = &check;
	int r = start(v, fd, keys, err);
	if (r == 0)
		r = check_all(v, err);
	for (size_t i = 0; i < v->n_keys; i++)
		key_close(v->keys[i]);
	if (r < 0)
		return r;
	if (keys->n == 0 && check.verdict == RECEIPT_VALID && check.good > 0) {
		check.verdict = RECEIPT_CANNOT_TELL;
		snprintf(check.reason, sizeof(check.reason),
			 "there is no public key to check the signatures with");
	}
	*ret_check = check;
	return 0;
}
