/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL 3 wants EVP for digests.  The plain functions need no memory, no lookup of an algorithm
 * and cannot fail, and use the same SHA instructions. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "receipt/digest.h"

#include "receipt/hex.h"

#include <errno.h>
#include <openssl/sha.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct digest), "libcrypto's state must fit");
_Static_assert(DIGEST_SIZE == SHA256_DIGEST_LENGTH, "a digest is SHA-256");

static SHA256_CTX *context(struct digest *digest)
{
	return (SHA256_CTX *)(void *)digest->state;
}

void digest_init(struct digest *digest)
{
	SHA256_Init(context(digest));
}

void digest_update(struct digest *digest, const void *data, size_t len)
{
	SHA256_Update(context(digest), data, len);
}

void digest_final(struct digest *digest, char ret_hex[static DIGEST_HEX_SIZE])
{
	uint8_t raw[DIGEST_SIZE];

	SHA256_Final(raw, context(digest));
	hex_encode(raw, sizeof(raw), ret_hex);
}

void digest_of(const void *data, size_t len, char ret_hex[static DIGEST_HEX_SIZE])
{
	struct digest digest;

	digest_init(&digest);
	digest_update(&digest, data, len);
	digest_final(&digest, ret_hex);
}

int digest_of_fd(int fd, char ret_hex[static DIGEST_HEX_SIZE], uint64_t *ret_bytes)
{
	struct digest digest;
	char block[64 * 1024];
	uint64_t bytes = 0;

	digest_init(&digest);
	for (;;) {
		ssize_t n = read(fd, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		digest_update(&digest, block, (size_t)n);
		bytes += (uint64_t)n;
	}
	digest_final(&digest, ret_hex);
	*ret_bytes = bytes;
	return 0;
}

bool digest_is_hex(const char *text)
{
	return strnlen(text, DIGEST_HEX_SIZE) == DIGEST_HEX_SIZE - 1 &&
	       strspn(text, "0123456789abcdef") == DIGEST_HEX_SIZE - 1;
}
