/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor.h"

#include "base/auto.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct check_group groups[] = {
	{ "Kernel", doctor_kernel_checks },
	{ "Namespaces", doctor_namespace_checks },
	{ "Limits", doctor_cgroup_checks },
	{ "Files", doctor_storage_checks },
	{ "Languages", doctor_runtime_checks },
	{ "Hardening of the host", doctor_sysctl_checks },
	{ "Other isolation", doctor_tool_checks },
	{ NULL, NULL },
};

const struct check_group *doctor_groups(void)
{
	return groups;
}

const struct check *doctor_find(const char *name)
{
	for (const struct check_group *g = groups; g->title; g++)
		for (const struct check *c = g->checks; c->name; c++)
			if (strcmp(c->name, name) == 0)
				return c;
	return NULL;
}

const char *doctor_status_name(enum doctor_status status)
{
	switch (status) {
	case DOCTOR_OK:
		return "ok";
	case DOCTOR_DEGRADED:
		return "degraded";
	case DOCTOR_MISSING:
		break;
	}
	return "missing";
}

/* What a tool prints or a file holds goes to a terminal and into JSON. */
static void make_printable(char *text)
{
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
}

static void put(char *text, size_t size, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));

static void put(char *text, size_t size, const char *fmt, va_list args)
{
	(void)vsnprintf(text, size, fmt, args);
	make_printable(text);
}

void finding_found(struct finding *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put(f->found, sizeof(f->found), fmt, args);
	va_end(args);
}

void finding_mend(struct finding *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put(f->mend, sizeof(f->mend), fmt, args);
	va_end(args);
}

void finding_set(struct finding *f, enum doctor_status status, const char *means, const char *mend)
{
	f->status = status;
	(void)snprintf(f->means, sizeof(f->means), "%s", means);
	(void)snprintf(f->mend, sizeof(f->mend), "%s", mend ? mend : "");
	make_printable(f->means);
	make_printable(f->mend);
}

ssize_t host_read(const struct host *host, const char *path, char *ret_text, size_t size)
{
	ssize_t len = fd_read_text_at(host->root, path, ret_text, size);

	while (len > 0 && ret_text[len - 1] == '\n')
		ret_text[--len] = '\0';
	return len;
}

int host_read_number(const struct host *host, const char *path, long long *ret_number)
{
	char text[64];
	ssize_t len = host_read(host, path, text, sizeof(text));

	if (len < 0)
		return (int)len;
	char *end;
	errno = 0;
	long long number = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

bool host_has(const struct host *host, const char *path)
{
	return faccessat(host->root, path, F_OK, 0) == 0;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

bool host_find_program(const struct host *host, const char *name, char *ret_path, size_t size)
{
	for (const char *at = host->path; *at;) {
		size_t len = strcspn(at, ":");
		int n = snprintf(ret_path, size, "%.*s/%s", (int)len, at, name);
		/* An empty or relative entry means the current folder, which is anybody's. */
		if (*at == '/' && n > 0 && (size_t)n < size && is_program(ret_path))
			return true;
		at += len;
		at += *at == ':';
	}
	ret_path[0] = '\0';
	return false;
}
