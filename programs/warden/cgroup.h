/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup.h - the kernel's own accounts: limits of the code, and what it used.
 *
 * A host has cgroup v2, or v1 with one hierarchy per controller (a hybrid host counts as v1), or
 * gives us no right to make one.  Below the warden's own cgroup, or the nearest ancestor that
 * lets us, lies `cay-<id of the state directory>`, and in it one leaf per sandbox for its code. The
 * agent stays in the warden's own cgroup, so that the kernel never picks it as a victim. */
#pragma once

#include "wire/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

enum controller { CTL_MEMORY, CTL_PIDS, CTL_CPU, CTL_FREEZER, CTL_CPUACCT, CTL_IO, CTLS_ };

/* One directory that all of some controllers share: the one of v2, or one of several of v1. */
struct cgroup_hierarchy {
	unsigned controllers; /* bits 1 << enum controller */
	char base[512];       /* where `cay-...` is made, absolute on the host */
	int base_fd;
};

struct cgroup_host {
	uint32_t version; /* 0: none that we may use */
	size_t n;
	struct cgroup_hierarchy at[CTLS_];
	char group[64]; /* cay-<id> */
	char why[160];  /* version 0: what is missing */
};

#define CGROUP_LEAF_MAX CTLS_

/* The cgroup of one sandbox: a directory per hierarchy. */
struct cgroup {
	const struct cgroup_host *host; /* borrowed; NULL: nothing made */
	char leaf[64];
	int dir[CGROUP_LEAF_MAX]; /* of the code */
	ino_t inode[CGROUP_LEAF_MAX];
	uint64_t peak_pids;
	bool has_io;
};

/* Looks at this host.  Never fails: version says what there is. */
void cgroup_probe(struct cgroup_host *host, const char *group);
void cgroup_probe_finish(struct cgroup_host *host);

/* The same, told what /proc/self/mountinfo and /proc/self/cgroup say. */
void cgroup_probe_texts(struct cgroup_host *host, const char *group, const char *mounts,
			const char *cgroups);

/* Makes the sandbox's cgroup and writes the limits; those of memory and pids are read back. */
int cgroup_create(struct cgroup *cgroup, const struct cgroup_host *host, const char *leaf,
		  const struct limits *limits, struct err *err);

/* Limits of disk I/O for the block device that carries the workspace; best effort: says by
 * has_io whether they hold. */
void cgroup_limit_io(struct cgroup *cgroup, dev_t device, const struct limits *limits);

/* Descriptors into which a process writes "0" to move itself.  The caller closes them.  Returns
 * their number. */
int cgroup_open_tasks(const struct cgroup *cgroup, int ret_tasks[CGROUP_LEAF_MAX], struct err *err);

int cgroup_set_limits(struct cgroup *cgroup, const struct limits *limits, struct err *err);
/* So many processes that they should be frozen before they are killed; freezing costs the kernel
 * more than killing a few. */
bool cgroup_is_crowded(const struct cgroup *cgroup);

int cgroup_freeze(struct cgroup *cgroup, bool frozen, struct err *err);

/* The killed may hurry: no more quota. */
void cgroup_lift_quota(struct cgroup *cgroup);

/* Fills in what the kernel counted; fields it cannot know are left alone. */
void cgroup_usage(struct cgroup *cgroup, struct usage *usage);

/* Who holds which limit; fields that no cgroup holds are left alone. */
void cgroup_enforcement(const struct cgroup *cgroup, struct enforcement *by);

/* Removes the directories; they must be empty of processes. */
void cgroup_destroy(struct cgroup *cgroup);
