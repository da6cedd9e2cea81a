/* SPDX-License-Identifier: Apache-2.0
 *
 * inside.h - from clone to exec: the child turns itself into the agent of its sandbox.
 *
 * No malloc, no log, no lock.  What fails is written as one struct err to status_fd, which
 * closes by itself when the agent runs. */
#pragma once

#include "jailroot.h"
#include "rlimits.h"
#include "wire/agent.h"

#include <sys/types.h>

struct inside {
	struct jail_root root;
	bool is_root_mapped; /* uid 0 exists in our user namespace */
	bool may_set_groups;
	uint32_t without; /* enum plan_without */
	int landlock_abi;
	int sync_fd; /* a byte comes when our user namespace has its maps */
	int status_fd;
	int stream_fd, handover_fd;
	int agent_fd; /* the agent's bytes, sealed */
	int tasks_fd[AGENT_TASKS_MAX];
	unsigned n_tasks;
	struct rlimit_want rlimits[RLIMITS_MAX];
	int n_rlimits;
	uid_t user; /* what the code runs as, in our user namespace */
};

_Noreturn void inside_main(struct inside *inside);
