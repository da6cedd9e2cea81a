/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_runtimes.c - our own programs, and the languages that can be run here. */
#include "doctor.h"

#include "base/err.h"
#include "runtime/runtime.h"
#include "state.h"

#include <limits.h>
#include <unistd.h>

static void check_warden(const struct host *host, struct finding *f)
{
	char path[PATH_MAX];
	struct err err;

	(void)host;
	if (state_find_program(path, "cay-warden", "CAY_WARDEN", &err) < 0) {
		finding_found(f, "%s", err.text);
		finding_set(f, DOCTOR_MISSING, "it builds the jails, so nothing can be run",
			    "meson setup build && ninja -C build && sudo ninja -C build install");
		return;
	}
	finding_found(f, "%s", path);
	if (access(path, X_OK) < 0)
		finding_set(f, DOCTOR_MISSING, "CAY_WARDEN names a program that cannot be executed",
			    "unset CAY_WARDEN");
	else
		finding_set(f, DOCTOR_OK, "builds the jails", NULL);
}

static void judge(const struct host *host, struct finding *f, const char *lang, const char *mend)
{
	struct runtime runtime;
	struct err err;

	if (!host->runtimes) {
		finding_found(f, "%s", host->runtimes_why);
		finding_set(f, DOCTOR_MISSING, "the languages of this host are not known",
			    "meson setup build && ninja -C build && sudo ninja -C build install");
		return;
	}
	if (runtimes_find(host->runtimes, lang, &runtime, &err) < 0) {
		char why[RUNTIME_WHY_SIZE];
		runtimes_explain(host->runtimes, lang, why);
		finding_found(f, "none");
		finding_set(f, DOCTOR_MISSING, why, mend);
		return;
	}
	finding_found(f, "%s, %s", runtime.name, runtime.exe);
	finding_set(f, DOCTOR_OK, "programs in this language can be run", NULL);
}

static void check_python(const struct host *host, struct finding *f)
{
	judge(host, f, "python", "sudo apt-get install python3");
}

static void check_python_data(const struct host *host, struct finding *f)
{
	struct runtime runtime;
	struct err err;

	if (!host->runtimes || runtimes_find(host->runtimes, "python", &runtime, &err) < 0) {
		finding_found(f, "no Python that cay could use");
		finding_set(f, DOCTOR_MISSING, "there are no libraries without Python",
			    "sudo apt-get install python3");
		return;
	}
	finding_found(f, "%s for %s", runtime.layer[0] ? runtime.layer : "none", runtime.name);
	if (runtime.layer[0]) {
		finding_set(f, DOCTOR_OK, "numpy, pandas, matplotlib and others can be imported",
			    NULL);
		return;
	}
	finding_set(f, DOCTOR_MISSING,
		    "programs find only the libraries that the host's Python has", NULL);
	finding_mend(f, "cay runtime add %s --with data", runtime.name);
}

static void check_node(const struct host *host, struct finding *f)
{
	judge(host, f, "node", "sudo apt-get install nodejs");
}

static void check_bash(const struct host *host, struct finding *f)
{
	judge(host, f, "bash", "sudo apt-get install bash");
}

static void check_c(const struct host *host, struct finding *f)
{
	judge(host, f, "c", "sudo apt-get install gcc libc6-dev");
}

const struct check doctor_runtime_checks[] = {
	{ "warden", "cay-warden", true, check_warden },
	{ "python", "Python", false, check_python },
	{ "python_data", "Python libraries", false, check_python_data },
	{ "node", "Node", false, check_node },
	{ "bash", "bash", false, check_bash },
	{ "c", "C", false, check_c },
	{ 0 },
};
