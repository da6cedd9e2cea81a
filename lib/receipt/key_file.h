/* SPDX-License-Identifier: Apache-2.0
 *
 * key_file.h - the files of the signing key, below `keys/` of the state directory. */
#pragma once

#include <stdint.h>

struct err;

#define KEY_FILE_SIZE 32

/* The seed; a new one is made, durable before it is used, when there is none.  A file that others
 * could have read or written, or of another size, is refused and left as it is. */
int key_file_load(const char *state_dir, uint8_t ret_seed[static KEY_FILE_SIZE], struct err *err);

/* Writes receipt.pub when it is missing. */
int key_file_publish(const char *state_dir, const uint8_t public[static KEY_FILE_SIZE],
		     struct err *err);
