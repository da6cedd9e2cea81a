/* SPDX-License-Identifier: Apache-2.0
 *
 * base64.h - RFC 4648 base64 with padding, and nothing but that.
 *
 * There is exactly one text for given bytes: what other decoders forgive (line breaks, missing
 * padding, bits set that are not used) is refused, so that no bit of a receipt can change
 * unnoticed. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BASE64_LEN(len) (((size_t)(len) + 2) / 3 * 4)

/* Writes BASE64_LEN(len) characters and no NUL. */
void base64_encode(const uint8_t *bytes, size_t len, char *ret_text);

/* Returns the number of bytes, or -EINVAL; -EMSGSIZE when there are more than size. */
ssize_t base64_decode(const char *text, size_t len, uint8_t *ret_bytes, size_t size);
