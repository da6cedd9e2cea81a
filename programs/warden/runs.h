/* SPDX-License-Identifier: Apache-2.0
 *
 * runs.h - a directory per sandbox that says what must be given back if its warden dies.
 *
 * STATE/runs/ID holds `lock`, which its warden keeps locked as long as it lives, and `record`.
 * Whoever can take the lock finds a dead run, and undoes exactly what the record names, each thing
 * checked by its inode, or by the run's id where the warden died before it knew an inode. */
#pragma once

#include "cgroup.h"
#include "ids.h"

#include "base/id.h"

struct err;

struct run {
	char id[ID_SIZE];
	char path[1024];
	int runs_fd, dir_fd, lock_fd;
};

int run_create(struct run *run, const char *state_dir, const char *id, struct err *err);

/* Before the things it names are made, and again when their inodes are known. */
int run_record(const struct run *run, const struct ids *ids, const struct cgroup *cgroup,
	       struct err *err);

/* Removes the directory.  Files of other uids must be gone already. */
void run_destroy(struct run *run);

/* Undoes what dead wardens of this state directory left. */
void runs_sweep(const char *state_dir);
