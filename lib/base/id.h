/* SPDX-License-Identifier: Apache-2.0
 *
 * id.h - names of things: one letter for the kind, 26 characters of [a-z2-7], 128 random bits. */
#pragma once

#include <stdbool.h>

struct err;

#define ID_LEN 27
#define ID_SIZE (ID_LEN + 1)

enum id_kind {
	ID_SANDBOX = 'b',
	ID_EXECUTION = 'x',
	ID_RECEIPT = 'r',
};

int id_make(char ret_id[static ID_SIZE], enum id_kind kind, struct err *err);
bool id_is_valid(const char *id, enum id_kind kind);
