/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	int errnum;
	const char *code;
} kinds[ERR_KINDS_] = {
	[ERR_SYSTEM] = { EIO, "system" },
	[ERR_INVALID] = { EINVAL, "invalid" },
	[ERR_NOT_FOUND] = { ENOENT, "not_found" },
	[ERR_CONFLICT] = { EBUSY, "conflict" },
	[ERR_LIMIT] = { EDQUOT, "limit" },
	[ERR_TIMEOUT] = { ETIMEDOUT, "timeout" },
	[ERR_UNSUPPORTED] = { EOPNOTSUPP, "unsupported" },
	[ERR_ISOLATION] = { EOPNOTSUPP, "isolation_unavailable" },
	[ERR_SETUP] = { EPERM, "setup_failed" },
	[ERR_PROTOCOL] = { EPROTO, "protocol" },
};

int err_errno(struct err *err, int errnum, const char *fmt, ...)
{
	va_list args;

	err->kind = ERR_SYSTEM;
	err->errnum = errnum > 0 ? errnum : EIO;

	/* When both do not fit, the cause matters more than the end of a long name. */
	const char *cause = strerror(err->errnum);
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text) - strlen(": ") - strlen(cause), fmt, args);
	va_end(args);

	size_t used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, ": %s", cause);
	return -err->errnum;
}

int err_make(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	va_list args;

	err->kind = kind;
	err->errnum = kinds[kind].errnum;

	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return -err->errnum;
}

int err_while(struct err *err, const char *fmt, ...)
{
	char doing[sizeof(err->text)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(doing, sizeof(doing) - 2, fmt, args);
	va_end(args);
	strcat(doing, ": ");

	/* When both do not fit, the cause matters more than the context. */
	size_t lead = strlen(doing);
	size_t said = strlen(err->text) + 1;
	if (lead + said <= sizeof(err->text)) {
		memmove(err->text + lead, err->text, said);
		memcpy(err->text, doing, lead);
	}
	return -err->errnum;
}

const char *err_code(const struct err *err)
{
	return kinds[err->kind].code;
}

void err_sanitize(struct err *err)
{
	if (err->kind < 0 || err->kind >= ERR_KINDS_)
		err->kind = ERR_PROTOCOL;
	if (err->errnum <= 0 || err->errnum > 4095)
		err->errnum = kinds[err->kind].errnum;
	err->text[sizeof(err->text) - 1] = '\0';
	for (char *c = err->text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}
