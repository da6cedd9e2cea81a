/* SPDX-License-Identifier: Apache-2.0 */
#include "base/settings.h"

#include "base/auto.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SETTINGS_MAX 64 /* keys in one table: one bit each in `seen` */

struct slice {
	const char *text;
	size_t len;
};

struct reader {
	const struct setting *table;
	char *target;
	uint64_t seen;
	unsigned line;
	struct err *err;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct slice trim(struct slice s)
{
	while (s.len > 0 && is_space(s.text[0]))
		s.text++, s.len--;
	while (s.len > 0 && is_space(s.text[s.len - 1]))
		s.len--;
	return s;
}

static bool has_control(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (((unsigned char)s.text[i] < ' ' && s.text[i] != '\t') || s.text[i] == 0x7f)
			return true;
	return false;
}

static bool is_key(struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.text[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
			return false;
	}
	return s.len > 0 && s.len <= 64;
}

static bool is_word(struct slice s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.text, word, s.len) == 0;
}

static int set_text(struct reader *r, const struct setting *setting, struct slice value)
{
	char *field = r->target + setting->at;
	bool lines = setting->kind == SETTING_LINES;
	size_t used = lines ? strnlen(field, setting->size) : 0;

	if (value.len == 0)
		return err_make(r->err, ERR_INVALID, "line %u: '%s' has no value", r->line,
				setting->name);
	/* The value, a newline after it in a list, and the end. */
	if (used + value.len + lines + 1 > setting->size)
		return err_make(r->err, ERR_LIMIT, "line %u: '%s' is longer than %zu bytes",
				r->line, setting->name, setting->size - 1);
	memcpy(field + used, value.text, value.len);
	used += value.len;
	if (lines)
		field[used++] = '\n';
	field[used] = '\0';
	return 0;
}

static int set_flag(struct reader *r, const struct setting *setting, struct slice value)
{
	bool yes = is_word(value, "yes");

	if (!yes && !is_word(value, "no"))
		return err_make(r->err, ERR_INVALID, "line %u: '%s' must be yes or no", r->line,
				setting->name);
	memcpy(r->target + setting->at, &yes, sizeof(yes));
	return 0;
}

static int set_number(struct reader *r, const struct setting *setting, struct slice value)
{
	uint64_t number = 0;
	bool good = value.len > 0;

	for (size_t i = 0; good && i < value.len; i++) {
		unsigned digit = (unsigned)(value.text[i] - '0');
		good = digit <= 9 && !__builtin_mul_overflow(number, 10u, &number) &&
		       !__builtin_add_overflow(number, digit, &number);
	}
	if (!good || number < setting->min || number > setting->max)
		return err_make(r->err, ERR_INVALID,
				"line %u: '%s' must be a whole number from %llu to %llu", r->line,
				setting->name, (unsigned long long)setting->min,
				(unsigned long long)setting->max);
	memcpy(r->target + setting->at, &number, sizeof(number));
	return 0;
}

static int set_value(struct reader *r, const struct setting *setting, struct slice value)
{
	switch (setting->kind) {
	case SETTING_TEXT:
	case SETTING_LINES:
		return set_text(r, setting, value);
	case SETTING_FLAG:
		return set_flag(r, setting, value);
	case SETTING_NUMBER:
		return set_number(r, setting, value);
	}
	return err_make(r->err, ERR_INVALID, "line %u: '%s' cannot be set", r->line, setting->name);
}

static int read_line(struct reader *r, struct slice line)
{
	if (line.len > SETTINGS_LINE_MAX)
		return err_make(r->err, ERR_LIMIT, "line %u is longer than %d bytes", r->line,
				SETTINGS_LINE_MAX);
	line = trim(line);
	if (line.len == 0 || line.text[0] == '#')
		return 0;
	if (has_control(line))
		return err_make(r->err, ERR_INVALID, "line %u has a control character", r->line);

	const char *equals = memchr(line.text, '=', line.len);
	size_t key_len = equals ? (size_t)(equals - line.text) : line.len;
	struct slice key = trim((struct slice){ line.text, key_len });
	if (!equals || !is_key(key))
		return err_make(r->err, ERR_INVALID, "line %u is not 'key = value'", r->line);
	struct slice value = trim((struct slice){ equals + 1, line.len - key_len - 1 });

	for (unsigned i = 0; i < SETTINGS_MAX && r->table[i].name; i++) {
		if (!is_word(key, r->table[i].name))
			continue;
		if ((r->seen >> i & 1) && r->table[i].kind != SETTING_LINES)
			return err_make(r->err, ERR_INVALID, "line %u: '%s' stands there twice",
					r->line, r->table[i].name);
		r->seen |= 1ull << i;
		return set_value(r, &r->table[i], value);
	}
	return err_make(r->err, ERR_INVALID, "line %u: there is no key '%.*s'", r->line,
			(int)key.len, key.text);
}

int settings_parse(const char *text, size_t len, const struct setting *table, void *target,
		   struct err *err)
{
	struct reader reader = { .table = table, .target = target, .err = err };

	if (len > SETTINGS_FILE_MAX)
		return err_make(err, ERR_LIMIT, "more than %d bytes", SETTINGS_FILE_MAX);
	while (len > 0) {
		const char *newline = memchr(text, '\n', len);
		size_t line_len = newline ? (size_t)(newline - text) : len;
		reader.line++;
		int r = read_line(&reader, (struct slice){ text, line_len });
		if (r < 0)
			return r;
		size_t step = line_len + (newline != NULL);
		text += step;
		len -= step;
	}
	return 0;
}

/* A fifo or a device could block us or never end: only what is a regular file is read. */
static int read_regular(int dirfd, const char *path, char *ret_text, size_t size, size_t *ret_len)
{
	struct stat st;
	size_t have = 0;

	auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	while (have < size) {
		ssize_t n = read(fd, ret_text + have, size - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	*ret_len = have;
	return 0;
}

int settings_read_at(int dirfd, const char *path, const struct setting *table, void *target,
		     struct err *err)
{
	char text[SETTINGS_FILE_MAX + 1];
	size_t len = 0;

	int r = read_regular(dirfd, path, text, sizeof(text), &len);
	if (r < 0)
		return err_errno(err, -r, "read '%s'", path);
	r = settings_parse(text, len, table, target, err);
	if (r < 0)
		return err_while(err, "read '%s'", path);
	return 0;
}
