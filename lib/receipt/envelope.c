/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/envelope.h"

#include "base/err.h"
#include "receipt/base64.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define PAYLOAD_TYPE "application/vnd.in-toto+json"
#define PAE_MAX (RECEIPT_STATEMENT_MAX + 64)
#define HEAD "{\"payloadType\":\"" PAYLOAD_TYPE "\",\"payload\":\""

/* All but the payload: two fixed texts, key id and signature. */
_Static_assert(BASE64_LEN(RECEIPT_STATEMENT_MAX) + 512 <= RECEIPT_LINE_MAX,
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
	char sig[BASE64_LEN(KEY_SIGNATURE_SIZE)];

	if (len > RECEIPT_STATEMENT_MAX)
		return err_make(err, ERR_LIMIT, "the receipt would be %zu bytes, over %d", len,
				RECEIPT_STATEMENT_MAX);
	int r = key_sign(key, pae, pre_authentication(payload, len, pae), signature, err);
	if (r < 0)
		return r;
	base64_encode(signature, sizeof(signature), sig);

	size_t n = strlen(HEAD);
	memcpy(ret_line, HEAD, n);
	base64_encode(payload, len, ret_line + n);
	n += BASE64_LEN(len);
	n += (size_t)snprintf(ret_line + n, RECEIPT_LINE_MAX + 1 - n,
			      "\",\"signatures\":[{\"keyid\":\"%s\",\"sig\":\"%.*s\"}]}\n",
			      key_id(key), (int)sizeof(sig), sig);
	return (int)n;
}

static int bad(struct err *err, const char *why)
{
	return err_make(err, ERR_PROTOCOL, "%s", why);
}

static int read_signature(const json_t *list, struct envelope *ret_envelope, struct err *err)
{
	const json_t *one = json_array_get(list, 0);
	const char *key_id = json_string_value(json_object_get(one, "keyid"));
	const json_t *sig = json_object_get(one, "sig");

	if (json_array_size(list) != 1 || json_object_size(one) != 2 || !key_id || !sig)
		return bad(err, "the envelope has not exactly one signature");
	if (!digest_is_hex(key_id))
		return bad(err, "the key id is not 64 hex digits");
	memcpy(ret_envelope->key_id, key_id, DIGEST_HEX_SIZE);
	if (!json_is_string(sig) ||
	    base64_decode(json_string_value(sig), json_string_length(sig), ret_envelope->signature,
			  KEY_SIGNATURE_SIZE) != KEY_SIGNATURE_SIZE)
		return bad(err, "the signature is not base64 of 64 bytes");
	return 0;
}

static int read_members(const json_t *root, struct envelope *ret_envelope, struct err *err)
{
	const char *type = json_string_value(json_object_get(root, "payloadType"));
	const json_t *payload = json_object_get(root, "payload");

	if (json_object_size(root) != 3 || !type || strcmp(type, PAYLOAD_TYPE) != 0 ||
	    !json_is_string(payload))
		return bad(err, "the line is not an envelope of an in-toto statement");
	ssize_t n = base64_decode(json_string_value(payload), json_string_length(payload),
				  ret_envelope->payload, sizeof(ret_envelope->payload));
	if (n < 0)
		return bad(err, "the payload is not base64 or too long");
	ret_envelope->payload_len = (size_t)n;
	digest_of(ret_envelope->payload, (size_t)n, ret_envelope->sha256);
	return read_signature(json_object_get(root, "signatures"), ret_envelope, err);
}

int envelope_parse(const char *line, size_t len, struct envelope *ret_envelope, struct err *err)
{
	if (len >= RECEIPT_LINE_MAX)
		return bad(err, "the line is too long");
	json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	if (!root)
		return bad(err, "the line is not JSON");
	int r = read_members(root, ret_envelope, err);
	json_decref(root);
	return r;
}

bool envelope_is_signed_by(const struct envelope *envelope, struct key *key)
{
	uint8_t pae[PAE_MAX];
	size_t len = pre_authentication(envelope->payload, envelope->payload_len, pae);

	return key_has_signed(key, pae, len, envelope->signature);
}
