/* SPDX-License-Identifier: Apache-2.0 */
#include "say.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

static bool is_quiet;

void say_set_quiet(bool quiet)
{
	is_quiet = quiet;
}

static bool has_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDERR_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

/* Length of the UTF-8 character at s, or 0 when it is none, is cut or is a control character. */
static size_t printable_utf8(const unsigned char *s, size_t len)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t min;
	} forms[] = { { 0x80, 0x00, 0x20 },
		      { 0xe0, 0xc0, 0xa0 },
		      { 0xf0, 0xe0, 0x800 },
		      { 0xf8, 0xf0, 0x10000 } };

	for (size_t n = 1; n <= ARRAY_LEN(forms); n++) {
		if ((s[0] & forms[n - 1].mask) != forms[n - 1].lead)
			continue;
		if (n > len)
			return 0;
		uint32_t c = s[0] & (unsigned char)~forms[n - 1].mask;
		for (size_t i = 1; i < n; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (s[i] & 0x3f);
		}
		/* Surrogates, and the marks that turn the direction of text, are not shown raw. */
		bool is_hidden = c == 0x7f || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff ||
				 (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
				 (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
		return c < forms[n - 1].min || is_hidden ? 0 : n;
	}
	return 0;
}

void say_escape(char *ret_text, size_t size, const void *bytes, size_t len)
{
	const unsigned char *s = bytes;
	size_t used = 0;

	for (size_t i = 0; i < len;) {
		char piece[8];
		size_t n = printable_utf8(s + i, len - i), out = n;
		if (s[i] == '\\')
			out = (size_t)snprintf(piece, sizeof(piece), "\\\\");
		else if (n > 0)
			memcpy(piece, s + i, n);
		else if (s[i] == '\n' || s[i] == '\t')
			out = (size_t)snprintf(piece, sizeof(piece), "\\%c",
					       s[i] == '\n' ? 'n' : 't');
		else
			out = (size_t)snprintf(piece, sizeof(piece), "\\x%02x", s[i]);
		/* Room for "..." and NUL is always kept. */
		if (used + out + 4 > size) {
			memcpy(ret_text + used, "...", 4);
			return;
		}
		memcpy(ret_text + used, piece, out);
		used += out;
		i += n > 0 ? n : 1;
	}
	ret_text[used] = '\0';
}

static void say_line(const char *colour, const char *text)
{
	char escaped[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 64];
	bool coloured = *colour && has_colour();

	say_escape(escaped, sizeof(escaped), text, strlen(text));
	int n = snprintf(line, sizeof(line), "%scay:%s %s\n", coloured ? colour : "",
			 coloured ? "\033[0m" : "", escaped);
	/* One write, so that lines of several programs do not mix.  Nobody can be told when it
	 * fails. */
	(void)fd_write_all(STDERR_FILENO, line, (size_t)n);
}

__attribute__((format(printf, 2, 0))) static void say_v(const char *colour, const char *fmt,
							va_list args)
{
	char text[LINE_MAX_BYTES];

	vsnprintf(text, sizeof(text), fmt, args);
	say_line(colour, text);
}

void say(const char *fmt, ...)
{
	va_list args;

	if (is_quiet)
		return;
	va_start(args, fmt);
	say_v("", fmt, args);
	va_end(args);
}

void say_warning(const char *fmt, ...)
{
	va_list args;

	if (is_quiet)
		return;
	va_start(args, fmt);
	say_v("\033[33m", fmt, args);
	va_end(args);
}

void say_error(const struct err *err)
{
	say_line("\033[31m", err->text);
}

static void print_json_error(const struct err *err, const char *hint)
{
	char text[LINE_MAX_BYTES];

	say_escape(text, sizeof(text), err->text, strlen(err->text));
	json_t *doc = json_pack("{s:{s:s, s:s, s:s?}}", "error", "code", err_code(err), "message",
				text, "hint", hint);
	if (doc) {
		json_dumpf(doc, stdout, JSON_COMPACT);
		putchar('\n');
		fflush(stdout);
	}
	json_decref(doc);
}

int say_failure(const struct err *err, const char *hint, bool json, int code)
{
	if (json) {
		print_json_error(err, hint);
		return code;
	}
	say_error(err);
	if (hint)
		say_line("", hint);
	return code;
}
