/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include "base/err.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";

int id_make(char ret_id[static ID_SIZE], enum id_kind kind, struct err *err)
{
	uint8_t bits[17] = { 0 }; /* 130 bits are needed for 26 letters; the last two stay 0 */

	if (getrandom(bits, 16, 0) != 16)
		return err_errno(err, errno, "get random bytes for an id");

	ret_id[0] = (char)kind;
	for (unsigned i = 0; i < ID_LEN - 1; i++) {
		unsigned bit = i * 5;
		unsigned pair = (unsigned)bits[bit / 8] << 8 | bits[bit / 8 + (bit < 128 ? 1 : 0)];
		ret_id[i + 1] = letters[pair >> (11 - bit % 8) & 31];
	}
	ret_id[ID_LEN] = '\0';
	return 0;
}

bool id_is_valid(const char *id, enum id_kind kind)
{
	if (strnlen(id, ID_SIZE) != ID_LEN || id[0] != (char)kind)
		return false;
	return strspn(id + 1, letters) == ID_LEN - 1;
}
