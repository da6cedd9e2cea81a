/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/pem.h"

#include "receipt/base64.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BEGIN "-----BEGIN PUBLIC KEY-----"
#define END "-----END PUBLIC KEY-----"
#define LEAD_SIZE 12
#define DER_SIZE (LEAD_SIZE + PEM_KEY_SIZE)

/* SEQUENCE { SEQUENCE { OID 1.3.101.112 } BIT STRING of 32 bytes */
static const uint8_t lead[LEAD_SIZE] = { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
					 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 };

size_t pem_encode(const uint8_t key[static PEM_KEY_SIZE], char ret_text[static PEM_TEXT_SIZE])
{
	uint8_t der[DER_SIZE];
	char body[BASE64_LEN(DER_SIZE)];

	memcpy(der, lead, LEAD_SIZE);
	memcpy(der + LEAD_SIZE, key, PEM_KEY_SIZE);
	base64_encode(der, sizeof(der), body);
	return (size_t)snprintf(ret_text, PEM_TEXT_SIZE, BEGIN "\n%.*s\n" END "\n",
				(int)sizeof(body), body);
}

/* The letters between the two lines without line breaks, or -EINVAL when there are too many. */
static int unwrap(const char *from, const char *to, char ret_body[static BASE64_LEN(DER_SIZE)])
{
	size_t n = 0;

	for (; from < to; from++) {
		if (*from == '\n' || *from == '\r')
			continue;
		if (n == BASE64_LEN(DER_SIZE))
			return -EINVAL;
		ret_body[n++] = *from;
	}
	return n == BASE64_LEN(DER_SIZE) ? 0 : -EINVAL;
}

int pem_next(const char **text, uint8_t ret_key[static PEM_KEY_SIZE])
{
	char body[BASE64_LEN(DER_SIZE)];
	uint8_t der[DER_SIZE];

	const char *begin = strstr(*text, BEGIN);
	if (!begin)
		return 0;
	begin += strlen(BEGIN);
	const char *end = strstr(begin, END);
	if (!end || unwrap(begin, end, body) < 0 ||
	    base64_decode(body, sizeof(body), der, sizeof(der)) != DER_SIZE ||
	    memcmp(der, lead, LEAD_SIZE) != 0)
		return -EINVAL;
	memcpy(ret_key, der + LEAD_SIZE, PEM_KEY_SIZE);
	*text = end + strlen(END);
	return 1;
}
