/* SPDX-License-Identifier: Apache-2.0
 *
 * hex.h - bytes as lower-case hex digits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* ret_hex has room for 2 * len + 1. */
static inline void hex_encode(const uint8_t *bytes, size_t len, char *ret_hex)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		ret_hex[2 * i] = digits[bytes[i] >> 4];
		ret_hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret_hex[2 * len] = '\0';
}
