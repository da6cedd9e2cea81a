/* SPDX-License-Identifier: Apache-2.0
 *
 * pem.h - Ed25519 public keys as `-----BEGIN PUBLIC KEY-----`.
 *
 * RFC 8410 leaves no choice in these 44 bytes, so they are read and written without libcrypto's
 * decoders, which cost more than the signature. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PEM_KEY_SIZE 32
#define PEM_TEXT_SIZE 128

/* The key as text, ended by NUL.  Returns its length. */
size_t pem_encode(const uint8_t key[static PEM_KEY_SIZE], char ret_text[static PEM_TEXT_SIZE]);

/* Finds the first key at or after *text, moves *text behind it and returns 1; 0 when there is
 * none; -EINVAL for one that is damaged or not Ed25519. */
int pem_next(const char **text, uint8_t ret_key[static PEM_KEY_SIZE]);
