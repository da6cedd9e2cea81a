/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/base64.h"

#include <errno.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const uint8_t *bytes, size_t len, char *ret_text)
{
	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t bits = (uint32_t)bytes[i] << 16;

		if (n > 1)
			bits |= (uint32_t)bytes[i + 1] << 8;
		if (n > 2)
			bits |= bytes[i + 2];
		*ret_text++ = letters[bits >> 18];
		*ret_text++ = letters[bits >> 12 & 63];
		*ret_text++ = n > 1 ? letters[bits >> 6 & 63] : '=';
		*ret_text++ = n > 2 ? letters[bits & 63] : '=';
	}
}

static int value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* Four letters, of which the last `pads` are '=': their bits, or -1. */
static int32_t group(const char *text, size_t pads)
{
	int32_t bits = 0;

	for (size_t i = 0; i < 4; i++) {
		int v = i < 4 - pads ? value(text[i]) : 0;
		if (v < 0)
			return -1;
		bits = bits << 6 | v;
	}
	/* Bits below the last whole byte must be 0, or two texts would mean the same. */
	return bits & ((1 << 8 * pads) - 1) ? -1 : bits;
}

ssize_t base64_decode(const char *text, size_t len, uint8_t *ret_bytes, size_t size)
{
	size_t pads = 0;

	if (len % 4 != 0)
		return -EINVAL;
	while (pads < 2 && len > pads && text[len - 1 - pads] == '=')
		pads++;

	size_t bytes = len / 4 * 3 - pads;
	if (bytes > size)
		return -EMSGSIZE;
	for (size_t i = 0, at = 0; i < len; i += 4) {
		int32_t bits = group(text + i, i + 4 == len ? pads : 0);
		if (bits < 0)
			return -EINVAL;
		for (int shift = 16; shift >= 0 && at < bytes; shift -= 8)
			ret_bytes[at++] = (uint8_t)(bits >> shift);
	}
	return (ssize_t)bytes;
}
