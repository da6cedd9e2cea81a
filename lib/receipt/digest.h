/* SPDX-License-Identifier: Apache-2.0
 *
 * digest.h - SHA-256, streamed or at once, as 64 lower-case hex digits.
 *
 * Cannot fail and needs no set-up; a struct digest may be copied and needs no cleanup. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_SIZE 32
#define DIGEST_HEX_SIZE (2 * DIGEST_SIZE + 1)

/* `prev` of the first receipt. */
#define DIGEST_ZERO "0000000000000000000000000000000000000000000000000000000000000000"

struct digest {
	uint64_t state[16];
};

void digest_init(struct digest *digest);
void digest_update(struct digest *digest, const void *data, size_t len);
/* Ends the digest; init it again before further use. */
void digest_final(struct digest *digest, char ret_hex[static DIGEST_HEX_SIZE]);

void digest_of(const void *data, size_t len, char ret_hex[static DIGEST_HEX_SIZE]);

/* Of what fd has from its offset to its end.  0 or -errno. */
int digest_of_fd(int fd, char ret_hex[static DIGEST_HEX_SIZE], uint64_t *ret_bytes);

bool digest_is_hex(const char *text);
