/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/envelope.h"

#include "base/err.h"
#include "receipt/base64.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define PAYLOAD_TYPE "application/vnd.in-toto+json"
#define PAE_MAX (RECEIPT_STATEMENT_MAX + 64)

/* An envelope as we write it; between these texts are the payload, the key id and the signature. */
#define HEAD "{\"payloadType\":\"" PAYLOAD_TYPE "\",\"payload\":\""
#define BEFORE_KEY "\",\"signatures\":[{\"keyid\":\""
#define BEFORE_SIG "\",\"sig\":\""
#define TAIL "\"}]}"
#define LEN(text) (sizeof(text) - 1)
#define SIG_LEN BASE64_LEN(KEY_SIGNATURE_SIZE)
#define FRAME_LEN                                                                                  \
	(LEN(HEAD) + LEN(BEFORE_KEY) + LEN(DIGEST_ZERO) + LEN(BEFORE_SIG) + SIG_LEN + LEN(TAIL))

_Static_assert(BASE64_LEN(RECEIPT_STATEMENT_MAX) + FRAME_LEN + 1 <= RECEIPT_LINE_MAX,
	       "the largest statement must fit a line");

/* What DSSE signs: the type is part of it, so a signature made for one kind of document cannot
 * be used for another. */
static size_t pre_authentication(const void *payload, size_t len, uint8_t ret_pae[static PAE_MAX])
{
	int n = snprintf((char *)ret_pae, PAE_MAX, "DSSEv1 %zu %s %zu ", strlen(PAYLOAD_TYPE),
			 PAYLOAD_TYPE, len);

	memcpy(ret_pae + n, payload, len);
	return (size_t)n + len;
}

int envelope_write(struct key *key, const void *payload, size_t len,
		   char ret_line[static RECEIPT_LINE_MAX + 1], struct err *err)
{
	uint8_t pae[PAE_MAX], signature[KEY_SIGNATURE_SIZE];
	char sig[SIG_LEN];

	if (len > RECEIPT_STATEMENT_MAX)
		return err_make(err, ERR_LIMIT, "the receipt would be %zu bytes, over %d", len,
				RECEIPT_STATEMENT_MAX);
	int r = key_sign(key, pae, pre_authentication(payload, len, pae), signature, err);
	if (r < 0)
		return r;
	base64_encode(signature, sizeof(signature), sig);

	char *at = mempcpy(ret_line, HEAD, LEN(HEAD));
	base64_encode(payload, len, at);
	at = mempcpy(at + BASE64_LEN(len), BEFORE_KEY, LEN(BEFORE_KEY));
	at = mempcpy(at, key_id(key), LEN(DIGEST_ZERO));
	at = mempcpy(at, BEFORE_SIG, LEN(BEFORE_SIG));
	at = mempcpy(at, sig, SIG_LEN);
	at = mempcpy(at, TAIL "\n", LEN(TAIL "\n") + 1);
	return (int)(at - ret_line - 1);
}

static int bad(struct err *err, const char *why)
{
	return err_make(err, ERR_PROTOCOL, "%s", why);
}

/* Where the parts of an envelope are. */
struct parts {
	const char *payload, *key_id, *sig;
	size_t payload_len, key_id_len, sig_len;
};

/* The parts of a line that has the form in which we write it. */
static bool split_own(const char *line, size_t len, struct parts *ret_parts)
{
	if (len < FRAME_LEN)
		return false;
	const char *tail = line + len - LEN(TAIL);
	const char *sig = tail - SIG_LEN;
	const char *key_id = sig - LEN(BEFORE_SIG) - LEN(DIGEST_ZERO);
	const char *payload_end = key_id - LEN(BEFORE_KEY);

	if (memcmp(line, HEAD, LEN(HEAD)) != 0 || memcmp(tail, TAIL, LEN(TAIL)) != 0 ||
	    memcmp(payload_end, BEFORE_KEY, LEN(BEFORE_KEY)) != 0 ||
	    memcmp(sig - LEN(BEFORE_SIG), BEFORE_SIG, LEN(BEFORE_SIG)) != 0)
		return false;
	*ret_parts = (struct parts){
		.payload = line + LEN(HEAD),
		.payload_len = (size_t)(payload_end - line) - LEN(HEAD),
		.key_id = key_id,
		.key_id_len = LEN(DIGEST_ZERO),
		.sig = sig,
		.sig_len = SIG_LEN,
	};
	return true;
}

/* The parts of any other JSON that means the same; they live as long as root. */
static int split_json(const json_t *root, struct parts *ret_parts, struct err *err)
{
	const char *type = json_string_value(json_object_get(root, "payloadType"));
	const json_t *payload = json_object_get(root, "payload");
	const json_t *list = json_object_get(root, "signatures");
	const json_t *one = json_array_get(list, 0);
	const json_t *key_id = json_object_get(one, "keyid"), *sig = json_object_get(one, "sig");

	if (json_object_size(root) != 3 || !type || strcmp(type, PAYLOAD_TYPE) != 0 ||
	    !json_is_string(payload))
		return bad(err, "the line is not an envelope of an in-toto statement");
	if (json_array_size(list) != 1 || json_object_size(one) != 2 || !json_is_string(key_id) ||
	    !json_is_string(sig))
		return bad(err, "the envelope has not exactly one signature");
	*ret_parts = (struct parts){
		.payload = json_string_value(payload),
		.payload_len = json_string_length(payload),
		.key_id = json_string_value(key_id),
		.key_id_len = json_string_length(key_id),
		.sig = json_string_value(sig),
		.sig_len = json_string_length(sig),
	};
	return 0;
}

static int read_parts(const struct parts *parts, struct envelope *ret_envelope, struct err *err)
{
	struct envelope *e = ret_envelope;
	ssize_t n =
		base64_decode(parts->payload, parts->payload_len, e->payload, sizeof(e->payload));

	if (n < 0)
		return bad(err, "the payload is not base64 or too long");
	e->payload_len = (size_t)n;
	digest_of(e->payload, (size_t)n, e->sha256);
	snprintf(e->key_id, sizeof(e->key_id), "%.*s", (int)parts->key_id_len, parts->key_id);
	if (parts->key_id_len != LEN(DIGEST_ZERO) || !digest_is_hex(e->key_id))
		return bad(err, "the key id is not 64 hex digits");
	if (base64_decode(parts->sig, parts->sig_len, e->signature, KEY_SIGNATURE_SIZE) !=
	    KEY_SIGNATURE_SIZE)
		return bad(err, "the signature is not base64 of 64 bytes");
	return 0;
}

int envelope_parse(const char *line, size_t len, struct envelope *ret_envelope, struct err *err)
{
	struct parts parts;

	if (len >= RECEIPT_LINE_MAX)
		return bad(err, "the line is too long");
	if (split_own(line, len, &parts))
		return read_parts(&parts, ret_envelope, err);
	json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	if (!root)
		return bad(err, "the line is not JSON");
	int r = split_json(root, &parts, err);
	if (r == 0)
		r = read_parts(&parts, ret_envelope, err);
	json_decref(root);
	return r;
}

bool envelope_is_signed_by(const struct envelope *envelope, struct key *key)
{
	uint8_t pae[PAE_MAX];
	size_t len = pre_authentication(envelope->payload, envelope->payload_len, pae);

	return key_has_signed(key, pae, len, envelope->signature);
}
