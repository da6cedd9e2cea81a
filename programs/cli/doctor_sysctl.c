/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_sysctl.c - settings of the host that make a second wall behind the jail's own.
 *
 * None of them is needed: the jail denies each of these things by itself.  They count on the day
 * the jail has a hole. */
#include "doctor.h"

#include <stdio.h>
#include <string.h>

/* A number in /proc/sys that should be `at_least`, or 0 where `at_least` is 0. */
struct setting {
	const char *key;  /* as sysctl(8) names it */
	const char *path; /* the same below /proc/sys */
	long long at_least, want;
	const char *good, *bad;
};

static void judge(const struct host *host, struct finding *f, const struct setting *s)
{
	char path[128];
	long long value;

	(void)snprintf(path, sizeof(path), "proc/sys/%s", s->path);
	if (host_read_number(host, path, &value) < 0) {
		finding_found(f, "%s is not known to this kernel", s->key);
		finding_set(f, DOCTOR_OK, s->good, NULL);
		return;
	}
	finding_found(f, "%s is %lld", s->key, value);
	if (s->at_least > 0 ? value >= s->at_least : value == 0) {
		finding_set(f, DOCTOR_OK, s->good, NULL);
		return;
	}
	finding_set(f, DOCTOR_DEGRADED, s->bad, NULL);
	finding_mend(f, "sudo sysctl -w %s=%lld", s->key, s->want);
}

static void check_core_pattern(const struct host *host, struct finding *f)
{
	char pattern[256] = "";

	if (host_read(host, "proc/sys/kernel/core_pattern", pattern, sizeof(pattern)) < 0) {
		finding_found(f, "unknown");
		finding_set(f, DOCTOR_OK, "core dumps are off in the jail", NULL);
		return;
	}
	finding_found(f, "%s", pattern[0] ? pattern : "empty");
	if (pattern[0] == '|')
		finding_set(f, DOCTOR_DEGRADED,
			    "a crash anywhere starts this program as root; in the jail only the "
			    "core limit of 1 byte keeps it from starting",
			    "sudo sysctl -w kernel.core_pattern=core");
	else
		finding_set(f, DOCTOR_OK, "no program is started by a crash in the jail", NULL);
}

static void check_tiocsti(const struct host *host, struct finding *f)
{
	static const struct setting s = {
		"dev.tty.legacy_tiocsti",
		"dev/tty/legacy_tiocsti",
		0,
		0,
		"only the jail's filter and its own session keep code from typing into a terminal",
		"the kernel lets programs type into a terminal; the jail's filter alone forbids it",
	};
	long long value;

	judge(host, f, &s);
	if (host_read_number(host, "proc/sys/dev/tty/legacy_tiocsti", &value) == 0 && value == 0)
		finding_set(f, DOCTOR_OK, "nobody can type into another's terminal", NULL);
}

static void check_io_uring(const struct host *host, struct finding *f)
{
	static const struct setting s = {
		"kernel.io_uring_disabled",
		"kernel/io_uring_disabled",
		1,
		2,
		"io_uring is out of reach of ordinary programs, and refused in the jail",
		"io_uring is open to all programs of the host; the jail's filter refuses it",
	};
	long long value;

	judge(host, f, &s);
	if (host_read_number(host, "proc/sys/kernel/io_uring_disabled", &value) < 0)
		finding_set(f, DOCTOR_OK, "the jail's filter refuses io_uring", NULL);
}

static void check_bpf(const struct host *host, struct finding *f)
{
	static const struct setting s = {
		"kernel.unprivileged_bpf_disabled",
		"kernel/unprivileged_bpf_disabled",
		1,
		2,
		"ordinary programs cannot load BPF",
		"ordinary programs of the host may load BPF; the jail's filter refuses it",
	};

	judge(host, f, &s);
}

static void check_userfaultfd(const struct host *host, struct finding *f)
{
	static const struct setting s = {
		"vm.unprivileged_userfaultfd",
		"vm/unprivileged_userfaultfd",
		0,
		0,
		"ordinary programs cannot stall the kernel with userfaultfd",
		"userfaultfd, a help to kernel exploits, is open to all; the jail's filter "
		"refuses it",
	};

	judge(host, f, &s);
}

static void check_dmesg(const struct host *host, struct finding *f)
{
	static const struct setting s = {
		"kernel.dmesg_restrict",
		"kernel/dmesg_restrict",
		1,
		1,
		"the kernel's log is for root",
		"any user reads the kernel's log and the addresses in it; the jail's filter "
		"refuses it",
	};

	judge(host, f, &s);
}

static void check_kptr(const struct host *host, struct finding *f)
{
	static const struct setting s = {
		"kernel.kptr_restrict",
		"kernel/kptr_restrict",
		1,
		1,
		"kernel addresses are hidden from ordinary programs",
		"kernel addresses stand in /proc for some programs; the jail masks the files",
	};

	judge(host, f, &s);
}

static void check_pid_max(const struct host *host, struct finding *f)
{
	static const struct setting s = {
		"kernel.pid_max",
		"kernel/pid_max",
		65536,
		4194304,
		"many runs can have their full number of processes",
		"some hundred runs at their limit of processes would use up the host's",
	};

	judge(host, f, &s);
}

static void check_swap(const struct host *host, struct finding *f)
{
	char text[4096];

	if (host_read(host, "proc/swaps", text, sizeof(text)) < 0 || !strchr(text, '\n')) {
		finding_found(f, "none");
		finding_set(f, DOCTOR_OK, "memory of a run never reaches a disk", NULL);
		return;
	}
	const char *first = strchr(text, '\n') + 1;
	finding_found(f, "%.*s", (int)strcspn(first, " \t\n"), first);
	finding_set(f, DOCTOR_DEGRADED,
		    "memory of a run may reach the disk, and a run may slow others by swapping",
		    "sudo swapoff -a");
}

static void check_ksm(const struct host *host, struct finding *f)
{
	long long run = 0;

	if (host_read_number(host, "sys/kernel/mm/ksm/run", &run) < 0)
		finding_found(f, "not in this kernel");
	else
		finding_found(f, "/sys/kernel/mm/ksm/run is %lld", run);
	if (run == 1)
		finding_set(f, DOCTOR_DEGRADED,
			    "equal pages of different programs are merged, and timing tells one "
			    "run what another holds",
			    "echo 2 | sudo tee /sys/kernel/mm/ksm/run");
	else
		finding_set(f, DOCTOR_OK, "pages of different runs are never merged", NULL);
}

const struct check doctor_sysctl_checks[] = {
	{ "core_pattern", "core dumps", false, check_core_pattern },
	{ "tiocsti", "TIOCSTI", false, check_tiocsti },
	{ "io_uring", "io_uring", false, check_io_uring },
	{ "unprivileged_bpf", "BPF", false, check_bpf },
	{ "unprivileged_userfaultfd", "userfaultfd", false, check_userfaultfd },
	{ "pid_max", "process ids", false, check_pid_max },
	{ "dmesg_restrict", "kernel log", false, check_dmesg },
	{ "kptr_restrict", "kernel addresses", false, check_kptr },
	{ "swap", "swap", false, check_swap },
	{ "ksm", "page merging", false, check_ksm },
	{ 0 },
};
