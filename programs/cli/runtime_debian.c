/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_debian.h"

#include "base/err.h"
#include "cli.h"
#include "runtime/build.h"
#include "say.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Debian 12 has no pyarrow. */
#define MODULES                                                                                    \
	"numpy, pandas, matplotlib.pyplot, sklearn, requests, PIL, dateutil, scipy, openpyxl, "    \
	"reportlab"
#define INSTALL                                                                                    \
	"apt-get install --no-install-recommends python3-numpy python3-pandas "                    \
	"python3-matplotlib python3-sklearn python3-requests python3-pil python3-dateutil "        \
	"python3-scipy python3-openpyxl python3-reportlab"

static const char *const apt_get = "/usr/bin/apt-get";

/* What it prints goes to stderr: stdout is for results. */
static int run_apt_get(struct err *err)
{
	char words[] = INSTALL " --yes", *argv[32], *rest = words;
	size_t n = 0;
	posix_spawn_file_actions_t actions;
	int status = 0;
	pid_t pid;

	while (n < 31 && rest)
		argv[n++] = strsep(&rest, " ");
	argv[n] = NULL;
	setenv("DEBIAN_FRONTEND", "noninteractive", 1);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	int r = posix_spawn(&pid, apt_get, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return err_errno(err, r, "start apt-get");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_make(err, ERR_UNSUPPORTED,
				"no package index has the libraries, and apt-get could not install "
				"Debian's either");
	return 0;
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
	say("no package index has the libraries; installing Debian's");
	int r = run_apt_get(err);
	if (r == 0)
		r = build_try_imports(build, MODULES, NULL, err);
	if (r < 0)
		return say_failure(err, NULL, false, EXIT_CAY_FAILED);
	say("%s has Debian's libraries now (all of '%s' but pyarrow)", name, build->set);
	return EXIT_DONE;
}
