/* SPDX-License-Identifier: Apache-2.0
 *
 * host.h - what this warden has of its host: uids, cgroups, the launcher, the layer of /etc.
 *
 * There is one per process, made once before the first sandbox. */
#pragma once

#include "cgroup.h"
#include "ids.h"
#include "launcher.h"

struct err;

struct host {
	char state_dir[512];
	uint32_t n_slots; /* sandboxes at the same time */
	struct ids ids;
	struct cgroup_host cgroups;
	struct launcher launcher;
	char layer[600];         /* hostlayer.h */
	const char *top_dirs[8]; /* "/bin" and its like, where they are not links into /usr */
	int n_top_dirs;
	bool ready;
};

extern struct host host;

/* A state_dir that is too long is refused by host_ready(). */
void host_init(const char *state_dir, uint32_t n_slots);

/* Makes everything that is missing; a launcher that died is replaced. */
int host_ready(struct err *err);

int host_take_slot(uint32_t *ret_slot, struct err *err);
void host_give_slot(uint32_t slot);

void host_finish(void);
