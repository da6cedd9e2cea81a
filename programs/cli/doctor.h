/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor.h - questions that `cay doctor` asks this machine, and the answers.
 *
 * A check looks at one thing and fills one finding; it cannot fail, changes nothing and leaves
 * nothing behind.  What can only be known by trying (a namespace, a mount, a filter) is tried in
 * a child that is gone, with all it made, when the check returns or its time is over.
 *
 * Files are read below host->root, so that a test can show a check any machine it likes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct runtimes;

#define DOCTOR_TRIAL_MS 3000 /* a child that takes longer is killed */

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_DEGRADED, /* cay works, with less */
	DOCTOR_MISSING,
};

const char *doctor_status_name(enum doctor_status status);

/* The machine as a check sees it. */
struct host {
	int root; /* descriptor of "/", borrowed */
	uid_t uid;
	gid_t gid;
	const char *user;      /* its login name, or "" */
	const char *path;      /* where programs are looked for, as in PATH */
	const char *state_dir; /* absolute; need not exist */
	bool in_container;
	struct runtimes *runtimes; /* borrowed; NULL: they cannot be asked, see runtimes_why */
	const char *runtimes_why;
};

struct finding {
	enum doctor_status status;
	char found[256]; /* what is there: "6.1.0", "/usr/bin/crun, 1.8.1" */
	char means[320]; /* what that means for cay */
	char mend[320];  /* the command that mends it; empty when nothing need be done */
};

struct check {
	const char *name; /* for scripts: never changes */
	const char *title;
	bool essential; /* without it `cay run` cannot work */
	void (*run)(const struct host *host, struct finding *f);
};

struct check_group {
	const char *title;
	const struct check *checks; /* ended by one without a name */
};

/* All of them, ended by one without a title. */
const struct check_group *doctor_groups(void);

/* The check of that name, or NULL. */
const struct check *doctor_find(const char *name);

/* Filling a finding.  Bytes that are not printable ASCII become '?'; what does not fit is cut. */
void finding_found(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void finding_set(struct finding *f, enum doctor_status status, const char *means, const char *mend);
void finding_mend(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Reads a small file below the root, without the newline at its end.  The length or -errno. */
ssize_t host_read(const struct host *host, const char *path, char *ret_text, size_t size);

/* Reads a file that holds one whole number. */
int host_read_number(const struct host *host, const char *path, long long *ret_number);

bool host_has(const struct host *host, const char *path);

/* Finds a program in host->path; the name is given back with its directory. */
bool host_find_program(const struct host *host, const char *name, char *ret_path, size_t size);

/* Runs fn in a child with the given CLONE_NEW* flags.  0 when it returned 0, else what it said;
 * ERR_TIMEOUT when it was still running after DOCTOR_TRIAL_MS. */
typedef int (*trial_fn)(void *arg, struct err *err);
int doctor_try(uint64_t clone_flags, trial_fn fn, void *arg, struct err *err);

/* In such a child: become uid 0 of the new user namespace. */
int doctor_become_root(uid_t uid, gid_t gid, struct err *err);

/* Runs argv with no input and keeps the first line of what it prints.  Its exit code, or -errno;
 * -ETIMEDOUT when it had to be killed. */
int doctor_run(char *const argv[], char *ret_line, size_t size);

/* A version of the kernel as upstream counts, and whether the patch level can be known. */
struct kernel_version {
	unsigned major, minor, patch;
	bool has_patch;
};

/* From osrelease, version and (Ubuntu) version_signature in /proc.  -EINVAL when it is no
 * version at all. */
int kernel_version_parse(const char *release, const char *version, const char *signature,
			 struct kernel_version *ret_version);
/* The name of a hole in this kernel that needs no privilege, or NULL. */
const char *kernel_known_hole(const struct kernel_version *version);

/* The size of the largest range that a subuid or subgid file gives to this user. */
uint64_t subid_largest(const char *text, const char *user, uid_t uid);

/* The first id behind all ranges of such a file, for a new one. */
uint64_t subid_next(const char *text);

/* Why no user namespace could be had; `tried` is what the trial said. */
void userns_explain(const struct host *host, const struct err *tried, struct finding *f);

/* Where this process is in the cgroup file systems. */
#define CGROUP_DIR_SIZE 1088

enum cgroup_controller { CG_MEMORY, CG_CPU, CG_PIDS, CG_IO, CG_FREEZER, CG_CONTROLLERS_ };

struct cgroup_view {
	bool has_v1, has_v2;
	bool v2_rights;               /* we may make cgroups in v2_dir */
	char v2_dir[CGROUP_DIR_SIZE]; /* where ours would be made, else our own cgroup; below the
				       * root, no leading '/' */
	struct {
		int version;               /* 0: not there */
		char dir[CGROUP_DIR_SIZE]; /* version 1: our own cgroup */
	} at[CG_CONTROLLERS_];
};

/* From /proc/self/cgroup and /proc/self/mountinfo; all zero when there is none. */
void cgroup_view_read(const struct host *host, struct cgroup_view *ret_view);

/* The checks, one table per file, each ended by a check without a name. */
extern const struct check doctor_kernel_checks[];
extern const struct check doctor_namespace_checks[];
extern const struct check doctor_cgroup_checks[];
extern const struct check doctor_storage_checks[];
extern const struct check doctor_sysctl_checks[];
extern const struct check doctor_runtime_checks[];
extern const struct check doctor_tool_checks[];
