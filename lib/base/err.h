/* SPDX-License-Identifier: Apache-2.0
 *
 * err.h - what went wrong, in a form that can cross a process boundary.
 *
 * A function that can fail takes `struct err *err` last and returns 0, or a
 * value >= 0 it documents, on success; on failure it returns a negative errno
 * and fills *err.  On success *err is untouched.
 *
 * struct err is plain bytes: no pointers, nothing to free.  It fits in one
 * atomic pipe write, so a half-built sandbox can report why it failed. */
#pragma once

#include <limits.h>
#include <stddef.h>

/* What the caller may act on. */
enum err_kind {
	ERR_SYSTEM,  /* the kernel said no; see errnum */
	ERR_INVALID, /* the request makes no sense */
	ERR_NOT_FOUND,
	ERR_CONFLICT, /* wrong state for this request */
	ERR_LIMIT,    /* a quota or a size limit was reached */
	ERR_TIMEOUT,
	ERR_UNSUPPORTED, /* this host cannot do it */
	ERR_ISOLATION,   /* the asked tier or a required layer is not to be had here */
	ERR_SETUP,       /* a layer of the sandbox did not take hold */
	ERR_PROTOCOL,    /* a peer broke the rules of its wire */
	ERR_KINDS_
};

struct err {
	int kind;       /* enum err_kind */
	int errnum;     /* an errno; never 0 once set */
	char text[504]; /* one sentence, no newline: "mount workspace: open '/x': ..." */
};

_Static_assert(sizeof(struct err) <= PIPE_BUF, "an err must fit one atomic write");

/* The kernel refused: kind ERR_SYSTEM.  strerror(errnum) is appended. */
int err_errno(struct err *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* We refused: errnum follows from kind. */
int err_make(struct err *err, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Say in front of the sentence what we were doing.  Returns -err->errnum, so:
 *     return err_while(err, "mount workspace of %s", id); */
int err_while(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The word for a kind that scripts and clients see: "setup_failed", "invalid". */
const char *err_code(const struct err *err);

/* Makes bytes from a peer a valid err: text ended and printable, kind and errnum in range. */
void err_sanitize(struct err *err);
