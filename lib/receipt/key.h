/* SPDX-License-Identifier: Apache-2.0
 *
 * key.h - the Ed25519 key that signs receipts: `keys/receipt.key`, 32 bytes that only its owner
 * can read, and `keys/receipt.pub` beside it.
 *
 * The key is made on first use and then never written again.  Any number of processes may come
 * first at the same time: all get the same key. */
#pragma once

#include "receipt/digest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct key;

#define KEY_SIZE 32
#define KEY_SIGNATURE_SIZE 64

/* Starts libcrypto without its configuration file, which could name modules to load. */
int key_start_crypto(struct err *err);

/* Loads the key below state_dir; makes it, and the directory, when missing. */
int key_open(const char *state_dir, struct key **ret_key, struct err *err);

/* A public key, to verify with. */
int key_open_public(const uint8_t raw[static KEY_SIZE], struct key **ret_key, struct err *err);

void key_close(struct key *key);

/* sha256 of the raw public key. */
const char *key_id(const struct key *key);

int key_sign(struct key *key, const void *data, size_t len,
	     uint8_t ret_signature[static KEY_SIGNATURE_SIZE], struct err *err);

bool key_has_signed(struct key *key, const void *data, size_t len,
		    const uint8_t signature[static KEY_SIGNATURE_SIZE]);
