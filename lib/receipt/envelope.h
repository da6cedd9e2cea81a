/* SPDX-License-Identifier: Apache-2.0
 *
 * envelope.h - DSSE: a payload, its type, and a signature over both.
 *
 * What is read here is not yet trusted: envelope_is_signed_by() first, then payload_parse(). */
#pragma once

#include "receipt/digest.h"
#include "receipt/key.h"
#include "receipt/receipt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct envelope {
	size_t payload_len;
	char key_id[DIGEST_HEX_SIZE];
	char sha256[DIGEST_HEX_SIZE]; /* of the payload */
	uint8_t signature[KEY_SIGNATURE_SIZE];
	uint8_t payload[RECEIPT_STATEMENT_MAX];
};

/* Signs the payload, of at most RECEIPT_STATEMENT_MAX bytes, and writes the envelope with a
 * newline and a NUL at its end.  Returns the length without the NUL. */
int envelope_write(struct key *key, const void *payload, size_t len,
		   char ret_line[static RECEIPT_LINE_MAX + 1], struct err *err);

/* Reads one line, given without its newline.  After an error *ret_envelope, which is large, may be
 * half filled. */
int envelope_parse(const char *line, size_t len, struct envelope *ret_envelope, struct err *err);

bool envelope_is_signed_by(const struct envelope *envelope, struct key *key);
