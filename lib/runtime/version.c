/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_LEN_MAX 24

bool version_is_valid(const char *version)
{
	bool digit_before = false;

	if (strlen(version) > VERSION_LEN_MAX)
		return false;
	for (const char *c = version; *c; c++) {
		bool digit = *c >= '0' && *c <= '9';
		if (!digit && (*c != '.' || !digit_before))
			return false;
		digit_before = digit;
	}
	return digit_before;
}

/* The number at *at, which is moved behind it and the dot. */
static unsigned long next_number(const char **at)
{
	char *end;

	if (**at < '0' || **at > '9')
		return 0;
	unsigned long number = strtoul(*at, &end, 10);
	*at = *end == '.' ? end + 1 : end;
	return number;
}

int version_compare(const char *a, const char *b)
{
	while (*a || *b) {
		const char *a_before = a, *b_before = b;
		unsigned long x = next_number(&a), y = next_number(&b);
		if (x != y)
			return x < y ? -1 : 1;
		if (a == a_before && b == b_before)
			break; /* neither is a version: no number left in them */
	}
	return 0;
}

bool version_matches(const char *version, const char *wanted)
{
	size_t len = strlen(wanted);

	return len == 0 || (strncmp(version, wanted, len) == 0 &&
			    (version[len] == '\0' || version[len] == '.'));
}

bool version_is_between(const char *version, const char *oldest, const char *newest)
{
	if (*oldest && version_compare(version, oldest) < 0)
		return false;
	return !*newest || version_matches(version, newest) ||
	       version_compare(version, newest) <= 0;
}

void version_cut(const char *version, size_t parts, char *ret_text, size_t size)
{
	size_t len = 0;

	for (; version[len]; len++)
		if (version[len] == '.' && --parts == 0)
			break;
	snprintf(ret_text, size, "%.*s", (int)len, version);
}
