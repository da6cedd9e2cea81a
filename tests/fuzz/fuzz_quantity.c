/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes, durations and numbers as people write them.  Whatever the text is, the answer is a number
 * above zero or one line that says what is wrong. */
#include "base/err.h"
#include "base/quantity.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const readers[])(const char *, const char *, uint64_t *,
				      struct err *) = { quantity_size, quantity_duration,
							quantity_number, quantity_millis };
	char shown[QUANTITY_TEXT];
	char *text = malloc(size + 1);

	if (!text)
		abort();
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		struct err err = { 0 };
		uint64_t value = 0;
		int r = readers[i](text, "--flag", &value, &err);
		if (r == 0 ? value == 0 : !strstr(err.text, "--flag"))
			abort();
		if (strlen(quantity_show_size(shown, value)) >= sizeof(shown) ||
		    strlen(quantity_show_duration(shown, value)) >= sizeof(shown))
			abort();
	}
	free(text);
	return 0;
}
