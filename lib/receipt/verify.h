/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.h - is this chain what was written?  Needs the file and the public key, nothing else.
 *
 * Says what the records prove: that this key signed them, in this order, with none missing
 * between the first and the last.  That the end of the chain was not cut off can only be told by
 * comparing the head with one that was noted elsewhere. */
#pragma once

#include "base/id.h"
#include "receipt/digest.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

#define RECEIPT_PUBLIC_SIZE 32
#define RECEIPT_KEYS_MAX 16

enum receipt_verdict {
	RECEIPT_VALID,
	RECEIPT_INVALID,
	RECEIPT_CANNOT_TELL, /* the key that would tell is not here */
};

enum receipt_fault {
	RECEIPT_NO_FAULT,
	RECEIPT_FAULT_FORMAT,    /* not a receipt */
	RECEIPT_FAULT_KEY,       /* signed by a key that is not trusted, or names another */
	RECEIPT_FAULT_SIGNATURE, /* the bytes are not those that were signed */
	RECEIPT_FAULT_ORDER,     /* seq is not the next one: deleted, doubled or moved */
	RECEIPT_FAULT_CHAIN,     /* prev is not the hash of the one before */
	RECEIPT_FAULTS_
};

/* Public keys that are trusted. */
struct receipt_keys {
	size_t n;
	uint8_t raw[RECEIPT_KEYS_MAX][RECEIPT_PUBLIC_SIZE];
};

struct receipt_check {
	enum receipt_verdict verdict;
	enum receipt_fault fault;     /* of the first bad line */
	uint64_t good;                /* receipts before it, or in all */
	uint64_t line;                /* first bad line, from 1; 0: none */
	uint64_t seq;                 /* what that line says it is; where it cannot be read, what it
					 should be */
	char id[ID_SIZE];             /* of the first bad one where it can be read, else "" */
	char reason[256];             /* one sentence, printable */
	uint64_t first_seq, last_seq; /* of the good ones */
	char head[DIGEST_HEX_SIZE];   /* hash of the last good statement; zeros for none */
	uint64_t torn_bytes;          /* after the last newline: an append that was cut short; no
					 record */
};

/* Adds the public keys of a PEM file (one or more of SubjectPublicKeyInfo, Ed25519). */
int receipt_keys_add_file(struct receipt_keys *keys, const char *path, struct err *err);

/* Reads the chain from fd to its end.  part: the file is a piece of a chain, its first receipt may
 * have any seq and prev.  Fails only when fd cannot be read. */
int receipt_verify(int fd, const struct receipt_keys *keys, bool part,
		   struct receipt_check *ret_check, struct err *err);

const char *receipt_verdict_name(enum receipt_verdict verdict); /* "valid", "cannot_tell" */
const char *receipt_fault_name(enum receipt_fault fault);       /* "signature" */
