/* SPDX-License-Identifier: Apache-2.0
 *
 * workspace.h - the sandbox's own writable directory, and its quota.
 *
 * As root it is a directory with a project quota, where the file system keeps those; else a file
 * system of the right size in a sparse file, behind a loop device that goes by itself with the last
 * mount.  Where neither can be had it is a directory that is watched. */
#pragma once

#include "wire/limits.h"

#include <stdbool.h>
#include <sys/types.h>

struct err;
struct run;

#define WORKSPACE_NEARLY_FULL 65536 /* bytes left that count as full */

struct workspace {
	uint32_t by;                       /* enum enforcer */
	int mount_fd;                      /* root: a detached mount; -1 otherwise */
	char path[1024];                   /* a watched directory */
	uint64_t start_bytes, start_files; /* what the empty file system itself takes */
	struct limits limits;
	int quota_fd;     /* the directory that has a quota; -1 otherwise */
	uint32_t project; /* of it */
	dev_t device;     /* the disk that carries it */
	dev_t loop;       /* the loop device in between; 0: none */
};

/* uid and gid: host ids of the sandbox's user, when the machine's root makes it. */
int workspace_create(struct workspace *workspace, const struct run *run, const char *state_dir,
		     const struct limits *limits, bool as_root, uid_t uid, gid_t gid,
		     struct err *err);

/* Shows a directory of the user's, whose owner becomes the sandbox's user; as root. */
int workspace_show(const char *path, bool read_only, uid_t uid, gid_t gid, struct err *err);

/* What it holds now, and whether it is full. */
void workspace_usage(const struct workspace *workspace, struct usage *usage);

void workspace_destroy(struct workspace *workspace);
