/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include "base/auto.h"
#include "base/err.h"
#include "check.h"

static struct err err;

TEST(id_make_makes_valid_ids_of_the_kind)
{
	static const enum id_kind kinds[] = { ID_SANDBOX, ID_EXECUTION, ID_RECEIPT };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		char id[ID_SIZE];
		CHECK_INT(id_make(id, kinds[i], &err), 0);
		CHECK_INT(strlen(id), ID_LEN);
		CHECK_INT(id[0], (char)kinds[i]);
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
			CHECK_INT(id_is_valid(id, kinds[k]), i == k);
	}
}

/* A letter that never changes would be a hole in the 128 bits. */
TEST(id_make_uses_all_of_its_bits)
{
	char seen[ID_LEN][128] = { 0 };
	char id[ID_SIZE];

	for (int i = 0; i < 2000; i++) {
		CHECK_INT(id_make(id, ID_SANDBOX, &err), 0);
		for (int k = 1; k < ID_LEN; k++)
			seen[k][(int)id[k]] = 1;
	}
	for (int k = 1; k < ID_LEN; k++) {
		int n = 0;
		for (int c = 0; c < 128; c++)
			n += seen[k][c];
		CHECK_INT(n, k == ID_LEN - 1 ? 8 : 32); /* 128 = 25 * 5 + 3 */
	}
}

TEST(id_is_valid_refuses_everything_else)
{
	static const char *const bad[] = {
		"",
		"b",
		"baaaaaaaaaaaaaaaaaaaaaaaaa",
		"baaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"xaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"bAaaaaaaaaaaaaaaaaaaaaaaaaa",
		"b0aaaaaaaaaaaaaaaaaaaaaaaaa",
		"b1aaaaaaaaaaaaaaaaaaaaaaaaa",
		"b8aaaaaaaaaaaaaaaaaaaaaaaaa",
		"b../aaaaaaaaaaaaaaaaaaaaaaa",
		"b\naaaaaaaaaaaaaaaaaaaaaaaaa",
	};

	CHECK(id_is_valid("baaaaaaaaaaaaaaaaaaaaaaaaaa", ID_SANDBOX));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!id_is_valid(bad[i], ID_SANDBOX));
}

TEST(id_is_valid_reads_no_byte_behind_a_field_without_end)
{
	char *field = malloc(ID_SIZE);

	CHECK(field != NULL);
	memset(field, 'a', ID_SIZE);
	field[0] = 'b';
	CHECK(!id_is_valid(field, ID_SANDBOX));
	free(field);
}
