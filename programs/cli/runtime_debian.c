/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_debian.h"

#include "base/auto.h"
#include "base/err.h"
#include "cli.h"
#include "runtime/build.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Debian 12 has no pyarrow. */
#define MODULES                                                                                    \
	"numpy, pandas, matplotlib.pyplot, sklearn, requests, PIL, dateutil, scipy, openpyxl, "    \
	"reportlab"
#define PACKAGES                                                                                   \
	"python3-numpy python3-pandas "                                                            \
	"python3-matplotlib python3-sklearn python3-requests python3-pil python3-dateutil "        \
	"python3-scipy python3-openpyxl python3-reportlab"
#define INSTALL "apt-get install --no-install-recommends " PACKAGES

static const char *const apt_get = "/usr/bin/apt-get";

#define TAIL_BYTES 2048
#define TAIL_LINES 8

/* The last lines of what it printed. */
static void show_tail(int log)
{
	char tail[TAIL_BYTES + 1], line[512];
	off_t size = lseek(log, 0, SEEK_END);
	ssize_t n = pread(log, tail, TAIL_BYTES, size > TAIL_BYTES ? size - TAIL_BYTES : 0);
	int lines = 0;

	if (n <= 0)
		return;
	tail[n] = '\0';
	char *at = tail + n;
	while (at > tail && lines <= TAIL_LINES)
		lines += *--at == '\n';
	if (*at == '\n')
		at++;
	while (*at) {
		size_t len = strcspn(at, "\n");
		say_escape(line, sizeof(line), at, len);
		fprintf(stderr, "  | %s\n", line);
		at += len + (at[len] == '\n');
	}
}

/* What it prints is shown only when it fails. */
static int spawn_apt_get(char **argv, int log, int *ret_status)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;

	setenv("DEBIAN_FRONTEND", "noninteractive", 1);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, log, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
	int r = posix_spawn(&pid, apt_get, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return -r;
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
	return 0;
}

static int run_apt_get(struct err *err)
{
	char words[] = INSTALL " --yes -qq", *argv[32], *rest = words;
	size_t n = 0;
	int status = 0;
	auto_close int log = memfd_create("apt-get", MFD_CLOEXEC);

	if (log < 0)
		return err_errno(err, errno, "keep what apt-get says");
	while (n < 31 && rest)
		argv[n++] = strsep(&rest, " ");
	argv[n] = NULL;
	int r = spawn_apt_get(argv, log, &status);
	if (r < 0)
		return err_errno(err, -r, "start apt-get");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	show_tail(log);
	return err_make(err, ERR_UNSUPPORTED,
			"no package index has the libraries, and apt-get could not install "
			"Debian's either");
}

int debian_add(struct build *build, struct err *err)
{
	const char *name = build->runtime->name;
	struct err why;

	if (build_try_imports(build, MODULES, NULL, &why) == 0) {
		say("%s has Debian's libraries already (all of '%s' but pyarrow)", name,
		    build->set);
		return EXIT_DONE;
	}
	if (access(apt_get, X_OK) < 0) {
		err_make(err, ERR_UNSUPPORTED,
			 "no package index has the libraries of %s, and there is no apt-get", name);
		return say_failure(err, NULL, false, EXIT_CAY_FAILED);
	}
	if (geteuid() != 0) {
		err_make(err, ERR_UNSUPPORTED,
			 "no package index has the libraries of %s; Debian's are installed with: "
			 "sudo " INSTALL,
			 name);
		return say_failure(err, NULL, false, EXIT_CAY_FAILED);
	}
	say("installing Debian's packages on this machine instead: " PACKAGES);
	int r = run_apt_get(err);
	if (r == 0)
		r = build_try_imports(build, MODULES, NULL, err);
	if (r < 0)
		return say_failure(err, NULL, false, EXIT_CAY_FAILED);
	say("%s has Debian's libraries now (all of '%s' but pyarrow)", name, build->set);
	return EXIT_DONE;
}
