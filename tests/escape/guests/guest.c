/* SPDX-License-Identifier: Apache-2.0 */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTSIDE 3

static const struct probe *const groups[] = { file_probes,   process_probes, signal_probes,
					      kernel_probes, socket_probes,  resource_probes,
					      core_probes };

static char details[4096];
static unsigned failures;

void fail(const char *fmt, ...)
{
	size_t used = strlen(details);
	va_list args;

	failures++;
	if (used && used + 3 < sizeof(details)) {
		strcpy(details + used, "; ");
		used += 2;
	}
	va_start(args, fmt);
	vsnprintf(details + used, sizeof(details) - used, fmt, args);
	va_end(args);
}

void refused(const char *what, long answer, const int *errnums)
{
	int errnum = errno;

	if (answer != -1) {
		fail("%s succeeded: %ld", what, answer);
		return;
	}
	for (; *errnums; errnums++)
		if (errnum == *errnums)
			return;
	fail("%s: %s", what, strerror(errnum));
}

void failed(const char *what, long answer)
{
	if (answer != -1)
		fail("%s succeeded: %ld", what, answer);
}

void worked(const char *what, long answer)
{
	if (answer == -1)
		fail("%s: %s", what, strerror(errno));
}

const char *read_whole(const char *path)
{
	static char text[262144];
	size_t used = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && used < sizeof(text) - 1) {
		ssize_t n = read(fd, text + used, sizeof(text) - 1 - used);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	text[used] = '\0';
	return text;
}

int in_child(void (*run)(void))
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		run();
		_exit(0);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	return status;
}

/* No root, the canary, and no file of the kernel's that could be written: no host is so. */
static bool in_sandbox(void)
{
	struct stat st;

	return getuid() != 0 && stat("/.cay/canary", &st) == 0 && stat("/workspace", &st) == 0 &&
	       access("/proc/sys/kernel/core_pattern", W_OK) != 0;
}

static const struct probe *find(const char *id)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (const struct probe *p = groups[i]; p->id; p++)
			if (strcmp(p->id, id) == 0)
				return p;
	return NULL;
}

static void list(void)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (const struct probe *p = groups[i]; p->id; p++)
			printf("%s%s\n", p->id, p->harmless ? " harmless" : "");
}

static void report(const char *id)
{
	printf("{\"probe\": \"%s\", \"ok\": %s, \"detail\": \"", id, failures ? "false" : "true");
	for (const char *c = details; *c; c++)
		if ((unsigned char)*c < ' ' || *c == '"' || *c == '\\' || *c == 0x7f)
			printf("\\u%04x", (unsigned char)*c);
		else
			putchar(*c);
	printf("\"}\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		list();
		return 0;
	}
	const struct probe *probe = find(argv[1]);
	if (!probe) {
		fprintf(stderr, "guest: there is no probe '%s'\n", argv[1]);
		return 2;
	}
	if (!probe->harmless && !in_sandbox()) {
		fprintf(stderr, "guest: '%s' runs in a sandbox only\n", argv[1]);
		return OUTSIDE;
	}
	probe->run(argc - 2, argv + 2);
	report(probe->id);
	return failures ? 1 : 0;
}
