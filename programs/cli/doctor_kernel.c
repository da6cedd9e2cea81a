/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_kernel.c - the kernel, and the layers of the jail that it alone gives. */
#include "doctor.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/sys.h"

#include <ctype.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UPGRADE "sudo apt-get update && sudo apt-get full-upgrade && sudo reboot"
#define MINIMUM_MAJOR 5
#define MINIMUM_MINOR 12 /* mount_setattr(2) */

/* Reads "6.1.106"; returns what stands behind it, or NULL. */
static const char *read_version(const char *text, struct kernel_version *ret_version)
{
	int len = 0;
	struct kernel_version v = { 0 };

	if (!isdigit((unsigned char)*text) ||
	    sscanf(text, "%3u.%3u%n", &v.major, &v.minor, &len) != 2)
		return NULL;
	text += len;
	if (sscanf(text, ".%5u%n", &v.patch, &len) == 1)
		text += len;
	*ret_version = v;
	return text;
}

/* Distributions keep the name of a release and take in later patches: the level is told elsewhere,
 * in "... Debian 6.1.106-3 (...)" or in Ubuntu's "Ubuntu 5.15.0-91.101-generic 5.15.131". */
static bool find_patch_level(const char *version, const char *signature,
			     struct kernel_version *ret_version)
{
	const char *at = strrchr(signature, ' ');

	if (at)
		return read_version(at + 1, ret_version) != NULL;
	at = strstr(version, "Debian ");
	return at && read_version(at + strlen("Debian "), ret_version) != NULL;
}

int kernel_version_parse(const char *release, const char *version, const char *signature,
			 struct kernel_version *ret_version)
{
	struct kernel_version v, upstream;
	const char *rest = read_version(release, &v);

	if (!rest)
		return -EINVAL;
	v.has_patch = v.patch > 0 || *rest == '\0';
	if (find_patch_level(version, signature, &upstream) && upstream.major == v.major &&
	    upstream.minor == v.minor) {
		v.patch = upstream.patch;
		v.has_patch = true;
	}
	*ret_version = v;
	return 0;
}

/* Holes that a program without privileges can use.  The filter may deny the way into one or the
 * other, but a kernel with such a hole is not kept. */
static const struct {
	const char *name;
	struct kernel_version from, fixed; /* series: hurt from here, whole from there */
	struct kernel_version fixes[4];    /* series in between, and the patch that heals each */
} holes[] = {
	{ "CVE-2022-0847 (Dirty Pipe)",
	  { 5, 8, 0, true },
	  { 5, 17, 0, true },
	  { { 5, 10, 102, true }, { 5, 15, 25, true }, { 5, 16, 11, true } } },
	{ "CVE-2023-3269 (StackRot)",
	  { 6, 1, 0, true },
	  { 6, 5, 0, true },
	  { { 6, 1, 37, true }, { 6, 3, 11, true }, { 6, 4, 1, true } } },
};

static bool is_series_before(const struct kernel_version *a, const struct kernel_version *b)
{
	return a->major != b->major ? a->major < b->major : a->minor < b->minor;
}

static bool is_healed(const struct kernel_version *v, const struct kernel_version *fixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fixes[i].major == v->major && fixes[i].minor == v->minor)
			return v->patch >= fixes[i].patch;
	return false;
}

const char *kernel_known_hole(const struct kernel_version *version)
{
	if (!version->has_patch)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(holes); i++)
		if (!is_series_before(version, &holes[i].from) &&
		    is_series_before(version, &holes[i].fixed) &&
		    !is_healed(version, holes[i].fixes, ARRAY_LEN(holes[i].fixes)))
			return holes[i].name;
	return NULL;
}

static bool is_too_old(const struct kernel_version *v)
{
	return is_series_before(v,
				&(struct kernel_version){ MINIMUM_MAJOR, MINIMUM_MINOR, 0, true });
}

static void check_kernel(const struct host *host, struct finding *f)
{
	char release[128] = "", version[256] = "", signature[256] = "";
	struct kernel_version v;

	(void)host_read(host, "proc/sys/kernel/osrelease", release, sizeof(release));
	(void)host_read(host, "proc/sys/kernel/version", version, sizeof(version));
	/* Only Ubuntu has this one. */
	(void)host_read(host, "proc/version_signature", signature, sizeof(signature));
	if (kernel_version_parse(release, version, signature, &v) < 0) {
		finding_found(f, "'%s'", release);
		finding_set(f, DOCTOR_DEGRADED,
			    "its version cannot be read; cay needs 5.12 or later",
			    "sudo mount -t proc proc /proc");
		return;
	}
	if (v.patch > 0)
		finding_found(f, "%s (%u.%u.%u)", release, v.major, v.minor, v.patch);
	else
		finding_found(f, "%s", release);

	const char *hole = kernel_known_hole(&v);
	if (is_too_old(&v)) {
		finding_set(f, DOCTOR_MISSING,
			    "cay needs 5.12 or later, for mount_setattr and overlays in a user "
			    "namespace",
			    UPGRADE);
	} else if (hole) {
		char means[256];
		(void)snprintf(means, sizeof(means),
			       "it has the hole %s: do not rely on a jail before it is mended",
			       hole);
		finding_set(f, DOCTOR_DEGRADED, means, UPGRADE);
	} else {
		finding_set(f, DOCTOR_OK, "new enough; keep it patched, the jail shares it", NULL);
	}
}

static void check_landlock(const struct host *host, struct finding *f)
{
	(void)host;
	const unsigned version_flag = 1;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, version_flag);

	if (abi < 0) {
		finding_found(f, "%s", strerror(errno));
		finding_set(
			f, DOCTOR_DEGRADED, "runs go without this layer and their receipts say so",
			errno == EOPNOTSUPP
				? "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&lsm=landlock,lockdown,"
				  "yama,integrity,apparmor,bpf /' /etc/default/grub && sudo "
				  "update-grub && sudo reboot"
				: UPGRADE);
		return;
	}
	finding_found(f, "ABI %ld", abi);
	if (abi < 3)
		finding_set(f, DOCTOR_DEGRADED,
			    "files are guarded but for truncation; signals and abstract sockets "
			    "are kept in by namespaces alone",
			    UPGRADE);
	else if (abi < 6)
		finding_set(f, DOCTOR_OK,
			    "files are guarded; signals and abstract sockets are kept in by "
			    "namespaces alone (ABI 6 would guard them too)",
			    NULL);
	else
		finding_set(f, DOCTOR_OK, "files, signals and abstract sockets are guarded", NULL);
}

/* A filter that allows everything: whether one may be set is all that is asked. */
static int set_filter(unsigned flags, struct err *err)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, errno, "no_new_privs");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) < 0)
		return err_errno(err, errno, "seccomp");
	return 0;
}

static int try_filter(void *arg, struct err *err)
{
	(void)arg;
	return set_filter(0, err);
}

static int try_notify(void *arg, struct err *err)
{
	unsigned action = SECCOMP_RET_USER_NOTIF;

	(void)arg;
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
		return err_errno(err, errno, "user notification");
	return set_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER, err);
}

static void check_seccomp(const struct host *host, struct finding *f)
{
	struct err err;

	(void)host;
	if (doctor_try(0, try_filter, NULL, &err) < 0) {
		finding_found(f, "%s", err.text);
		finding_set(f, DOCTOR_MISSING,
			    "no system call could be denied, so cay does not run anything",
			    UPGRADE);
		return;
	}
	finding_found(f, "filters can be set");
	finding_set(f, DOCTOR_OK, "system calls are limited to the allowed ones", NULL);
}

static void check_seccomp_notify(const struct host *host, struct finding *f)
{
	struct err err;

	(void)host;
	if (doctor_try(0, try_notify, NULL, &err) < 0) {
		finding_found(f, "%s", err.text);
		finding_set(f, DOCTOR_MISSING,
			    "denied system calls could not be counted; the filter needs a listener",
			    host->in_container ? "# run cay outside of this container" : UPGRADE);
		return;
	}
	finding_found(f, "a listener can be had");
	finding_set(f, DOCTOR_OK, "denied system calls are counted by name in the receipt", NULL);
}

/* The agent is started from a sealed memory file. */
static void check_memfd(const struct host *host, struct finding *f)
{
	long long noexec = 0;

	if (host_read_number(host, "proc/sys/vm/memfd_noexec", &noexec) < 0)
		finding_found(f, "vm.memfd_noexec is not known to this kernel");
	else
		finding_found(f, "vm.memfd_noexec is %lld", noexec);
	if (noexec >= 2)
		finding_set(f, DOCTOR_MISSING,
			    "the agent is started from a memory file, which this forbids",
			    "sudo sysctl -w vm.memfd_noexec=1");
	else
		finding_set(f, DOCTOR_OK, "the agent can be started from a memory file", NULL);
}

const struct check doctor_kernel_checks[] = {
	{ "kernel", "kernel", true, check_kernel },
	{ "seccomp", "seccomp filter", true, check_seccomp },
	{ "seccomp_notify", "seccomp listener", true, check_seccomp_notify },
	{ "landlock", "Landlock", false, check_landlock },
	{ "memfd_exec", "memory files", true, check_memfd },
	{ 0 },
};
