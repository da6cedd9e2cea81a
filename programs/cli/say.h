/* SPDX-License-Identifier: Apache-2.0
 *
 * say.h - what cay itself says to a person: on stderr, one line each, `cay: ...`.
 *
 * Bytes that came from elsewhere cannot move the cursor or colour the terminal: control
 * characters are shown as \n or \x1b, and a backslash as \\.  Give the raw bytes: what was escaped
 * before would be escaped twice.  Colour only on a terminal and without NO_COLOR. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;

/* -q: say() and say_warning() are silent, errors are not. */
void say_set_quiet(bool quiet);

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_error(const struct err *err);

/* The end of a command that failed: `cay: sentence` and `hint` (or NULL) on stderr, or with json
 * {"error":{"code","message","hint"}} on stdout.  Returns code. */
int say_failure(const struct err *err, const char *hint, bool json, int code);

/* Writes bytes as printable text: \n, \t and \\ for what they are; other control bytes, and bytes
 * that are not UTF-8, become \xNN.  Always ended by NUL; what does not fit is cut and ends in
 * "...". */
void say_escape(char *ret_text, size_t size, const void *bytes, size_t len);
