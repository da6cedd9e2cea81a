/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.h - files of `key = value` lines, read by a table of the keys that may stand in them.
 *
 *     # a comment has a line of its own
 *     name = python
 *     env = A=1
 *     env = B=2
 *
 * Space around key and value is dropped; a value goes to the end of its line, quotes mean
 * nothing.  A key that is not in the table, one that stands twice and may not, a value that does
 * not fit its field and a control character are errors that name the line.  Bytes are bounded
 * before they are looked at. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;

#define SETTINGS_FILE_MAX 65536
#define SETTINGS_LINE_MAX 4096

enum setting_kind {
	SETTING_TEXT,   /* char[size]; not empty */
	SETTING_LINES,  /* char[size]; the key may stand many times, one line each, '\n' after it */
	SETTING_FLAG,   /* bool: yes or no */
	SETTING_NUMBER, /* uint64_t: decimal, from min to max */
};

struct setting {
	const char *name; /* [a-z0-9_], the table is ended by NULL */
	enum setting_kind kind;
	size_t at;   /* offset of the field in the target */
	size_t size; /* of the field: SETTING_TEXT and SETTING_LINES */
	uint64_t min, max;
	const char *help; /* one sentence for the manual; may be NULL */
};

#define SETTING_FIELD(type, field) .at = offsetof(type, field), .size = sizeof(((type *)0)->field)

/* Fields whose key does not stand in the text are untouched.  After an error the target may be
 * half filled. */
int settings_parse(const char *text, size_t len, const struct setting *table, void *target,
		   struct err *err);

/* The same from a regular file; its name stands in the error. */
int settings_read_at(int dirfd, const char *path, const struct setting *table, void *target,
		     struct err *err);
