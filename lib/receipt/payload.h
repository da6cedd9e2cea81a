/* SPDX-License-Identifier: Apache-2.0
 *
 * payload.h - the statement inside a receipt: its bytes are what is signed and chained. */
#pragma once

#include "base/id.h"
#include "receipt/digest.h"
#include "receipt/receipt.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* Where a receipt stands in its chain. */
struct payload_place {
	char id[ID_SIZE];
	uint64_t seq;
	char prev[DIGEST_HEX_SIZE];
};

/* Writes the statement as compact ASCII JSON and returns its length; ERR_LIMIT when it is longer
 * than size. */
int payload_build(const struct payload_place *place, const json_t *predicate,
		  const struct receipt_subject *subjects, size_t n_subjects, char *ret_bytes,
		  size_t size, struct err *err);

/* Checks the form and finds the place.  ret_statement, when not NULL, becomes the caller's. */
int payload_parse(const void *bytes, size_t len, struct payload_place *ret_place,
		  json_t **ret_statement, struct err *err);

/* The place alone, for a payload of our own; cheap.  False: not in the form in which we write it,
 * ask payload_parse(). */
bool payload_peek(const void *bytes, size_t len, struct payload_place *ret_place);
