/* SPDX-License-Identifier: Apache-2.0
 *
 * jailroot.h - assembles the root file system of one sandbox out of what lies in U.
 *
 * Runs in the sandbox's own mount namespace, after clone and before exec: no malloc, no logging. */
#pragma once

#include "template.h"
#include "wire/warden.h"

#include <stdbool.h>
#include <stdint.h>

struct err;

#define JAIL_TREES_MAX 16

/* Paths here are ours, in U: short and without surprises. */
struct jail_tree {
	char lower[32], over[32];
	const char *target; /* in the sandbox; borrowed from the plan */
};

struct jail_input {
	int fd; /* a detached mount of one file */
	const char *name;
};

struct jail_root {
	char upper[32], lower[32]; /* of "/" */
	unsigned n_trees;
	struct jail_tree trees[JAIL_TREES_MAX];
	unsigned n_inputs;
	struct jail_input inputs[WARDEN_BINDS_MAX];
	const struct proc_mask *masks;
	int n_masks;
	int dev_fd;       /* a /dev that root made; -1: bind the host's devices */
	int workspace_fd; /* a detached mount; -1: none */
	bool workspace_ro;
	bool scratch; /* it is ours: input/ may be made in it */
	bool bare;    /* test builds: /proc without masks, flags left off */
	const struct limits *limits;
};

/* Builds everything and pivots into it. */
int jailroot_enter(const struct jail_root *root, struct err *err);

/* What mountinfo must show afterwards; the list is the same that jailroot_enter works by. */
struct jail_mount {
	char point[320];
	bool read_only;
	bool devices; /* nodev is not set */
};
#define JAIL_MOUNTS_MAX (PROC_MASKS_MAX + JAIL_TREES_MAX + WARDEN_BINDS_MAX + 24)
unsigned jailroot_expect(const struct jail_root *root,
			 struct jail_mount ret_mounts[JAIL_MOUNTS_MAX]);

/* As root: a detached /dev with device nodes of its own. */
int jailroot_make_dev(struct err *err);
