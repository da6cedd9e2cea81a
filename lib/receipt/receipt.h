/* SPDX-License-Identifier: Apache-2.0
 *
 * receipt.h - the signed record of a run, chained to the one before it.
 *
 * A receipt is an in-toto Statement in a DSSE envelope, signed with Ed25519; one envelope is one
 * line of `receipts/chain.jsonl` below the state directory.  When receipt_append() returns 0 the
 * receipt is on disk; when it fails the chain is what it was before.  Any number of processes may
 * append to one chain at the same time.  Format: docs/protocol/receipt.md.
 *
 *     receipts_open(dir, &receipts, &err)        while the sandbox is starting
 *     receipt_append(receipts, predicate, subjects, n, &receipt, &err)
 *     receipt_finish(&receipt);
 *     receipts_close(receipts); */
#pragma once

#include "base/id.h"
#include "receipt/digest.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct receipts;

#define RECEIPT_CHAIN "receipts/chain.jsonl"
#define RECEIPT_PUBLIC_KEY "keys/receipt.pub"
#define RECEIPT_PREDICATE_TYPE "urn:cay:receipt:v1"

/* A line of the chain with its newline, and the statement inside it, are never longer. */
#define RECEIPT_LINE_MAX (64 * 1024)
#define RECEIPT_STATEMENT_MAX 48000

/* A thing that the receipt speaks of: a result file, or "stdout".  The name is any bytes. */
struct receipt_subject {
	const char *name;   /* borrowed */
	const char *sha256; /* borrowed; 64 lower-case hex digits */
};

struct receipt {
	char id[ID_SIZE];
	uint64_t seq;                 /* 1 for the first of the chain */
	char sha256[DIGEST_HEX_SIZE]; /* of the statement's bytes; the next one's `prev` */
	char key_id[DIGEST_HEX_SIZE]; /* sha256 of the raw public key */
	char *envelope;               /* owned; the line as it was written, without newline */
};

/* Starts libcrypto, makes `keys` and `receipts` and the key where they are missing, and opens
 * them.  This is the slow part (half a millisecond): call it while something else must be waited
 * for.  state_dir must exist.  Nothing is locked or written to the chain yet. */
int receipts_open(const char *state_dir, struct receipts **ret_receipts, struct err *err);
void receipts_close(struct receipts *receipts);

/* Writes the next receipt.  predicate is a JSON object of the caller's facts; `id`, `seq`, `prev`,
 * `time` and `boot_us` are added here and must not be in it.  It stays the caller's and is not
 * changed.  subjects may be NULL when n_subjects is 0.
 *
 * ERR_LIMIT: the statement is over RECEIPT_STATEMENT_MAX (see statement.h for shortening).
 * ERR_CONFLICT: the end of the chain is damaged, or an earlier write could not be made durable
 * in this process; then nothing is appended any more.  ERR_SYSTEM: the disk is full or
 * read-only. */
int receipt_append(struct receipts *receipts, const json_t *predicate,
		   const struct receipt_subject *subjects, size_t n_subjects,
		   struct receipt *ret_receipt, struct err *err);

void receipt_finish(struct receipt *receipt);
