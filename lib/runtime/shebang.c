/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/shebang.h"

#include "runtime/manifest.h"
#include "runtime/version.h"

#include <stdio.h>
#include <string.h>

/* env's own options and assignments come before the interpreter. */
static bool skip_env(const char **at, char *word, size_t size)
{
	while (words_next(at, word, size))
		if (word[0] != '-' && !strchr(word, '='))
			return true;
	return false;
}

/* "python3.11" is python at 3.11; "sh" is sh. */
static void split_version(const char *base, struct shebang *shebang)
{
	size_t len = strlen(base), name = len;

	while (name > 0 && strchr("0123456789.", base[name - 1]))
		name--;
	if (name == 0 || !version_is_valid(base + name))
		name = len;
	snprintf(shebang->name, sizeof(shebang->name), "%.*s", (int)name, base);
	snprintf(shebang->version, sizeof(shebang->version), "%.23s", base + name);
}

bool shebang_parse(const char *head, size_t len, struct shebang *ret_shebang)
{
	char line[SHEBANG_LINE_MAX + 1], word[SHEBANG_LINE_MAX + 1];
	struct shebang shebang = { 0 };

	if (len < 3 || head[0] != '#' || head[1] != '!')
		return false;
	const char *newline = memchr(head, '\n', len);
	size_t line_len = (newline ? (size_t)(newline - head) : len) - 2;
	if (line_len > SHEBANG_LINE_MAX || memchr(head + 2, '\0', line_len))
		return false;
	memcpy(line, head + 2, line_len);
	line[line_len] = '\0';
	line[strcspn(line, "\r")] = '\0';

	const char *at = line;
	if (!words_next(&at, word, sizeof(word)))
		return false;
	const char *slash = strrchr(word, '/');
	if (strcmp(slash ? slash + 1 : word, "env") == 0) {
		if (!skip_env(&at, word, sizeof(word)))
			return false;
		slash = strrchr(word, '/');
	}
	split_version(slash ? slash + 1 : word, &shebang);
	snprintf(shebang.options, sizeof(shebang.options), "%s", at + strspn(at, " \t"));
	*ret_shebang = shebang;
	return shebang.name[0] != '\0';
}
