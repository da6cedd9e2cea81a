/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of `key = value` lines come from users and from interpreters that were asked. */
#include "base/err.h"
#include "base/settings.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fields {
	char name[8];
	char env[24];
	bool on;
	uint64_t parts;
	char guard[8];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct setting table[] = {
		{ "name", SETTING_TEXT, SETTING_FIELD(struct fields, name), 0, 0, NULL },
		{ "env", SETTING_LINES, SETTING_FIELD(struct fields, env), 0, 0, NULL },
		{ "on", SETTING_FLAG, SETTING_FIELD(struct fields, on), 0, 0, NULL },
		{ "parts", SETTING_NUMBER, SETTING_FIELD(struct fields, parts), 1, 9, NULL },
		{ 0 },
	};
	struct fields fields = { .parts = 1, .guard = "guard" };
	struct err err = { 0 };

	int r = settings_parse((const char *)data, size, table, &fields, &err);
	if (strnlen(fields.name, sizeof(fields.name)) == sizeof(fields.name) ||
	    strnlen(fields.env, sizeof(fields.env)) == sizeof(fields.env) || fields.parts < 1 ||
	    fields.parts > 9 || strcmp(fields.guard, "guard") != 0)
		abort();
	if (r < 0 && (err.text[0] == '\0' || strchr(err.text, '\n')))
		abort();
	return 0;
}
