/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - what the warden tells its launcher about one sandbox, and what it hears back.
 *
 * Both are the same program on both sides of a fork, so these structs cross a SEQPACKET socket as
 * they are.  The descriptors of a plan follow in the order of enum plan_fd; those of the cgroup,
 * of layers, and of inputs come last. */
#pragma once

#include "ids.h"
#include "wire/agent.h"
#include "wire/warden.h"

#include <stdbool.h>
#include <stdint.h>

enum launcher_ask {
	LAUNCHER_START,  /* -> launcher_reply with a pidfd */
	LAUNCHER_KILL,   /* the sandbox in a slot; -> a reply with `ended` when it is reaped */
	LAUNCHER_STATS,  /* of the process tree, for hosts without cgroups */
	LAUNCHER_REMOVE, /* a tree below the runs directory whose files belong to sandboxes */
};

/* What a LAUNCHER_STATS does besides counting (plan.watch). */
enum plan_watch {
	WATCH_ONLY,
	WATCH_LAST, /* count everything once more, however long it takes */
	WATCH_KILL_CODE,
	WATCH_STOP_WRITES,
};

/* Test builds may leave a layer out, to show that the others still hold. */
enum plan_without {
	WITHOUT_SECCOMP = 1u << 0,
	WITHOUT_LANDLOCK = 1u << 1,
	WITHOUT_CAPS = 1u << 2,
	WITHOUT_MOUNTS = 1u << 3, /* root writable in flags, /proc unmasked */
	WITHOUT_USERNS = 1u << 4,
	WITHOUT_RLIMITS = 1u << 5,
};

#define PLAN_FD_NONE 0xffffffffu

struct plan {
	uint32_t ask; /* enum launcher_ask */
	uint32_t slot;
	uint32_t own_user;     /* uid 1000 is the user himself */
	uint32_t without;      /* enum plan_without */
	uint32_t n_tasks;      /* cgroup descriptors */
	uint32_t watch;        /* enum plan_watch */
	uint32_t has_dev;      /* a /dev made by root comes along */
	uint32_t scratch;      /* the workspace is ours: make output/ in it */
	uint32_t workspace_fd; /* index of the descriptor, or PLAN_FD_NONE */
	uint32_t workspace_ro;
	uint32_t watch_disk;                /* count what lies in the workspace */
	uint32_t bind_fd[WARDEN_BINDS_MAX]; /* index of each bind's descriptor; as a user NONE */
	uint32_t over_fd[WARDEN_BINDS_MAX];
	char workspace_path[1024];   /* as a user: opened by the launcher */
	char remove_path[1024];      /* LAUNCHER_REMOVE */
	struct warden_create create; /* last: its strings are cut after strings_len */
};

enum plan_fd {
	PLAN_FD_STREAM,
	PLAN_FD_HANDOVER,
	PLAN_FD_FIRST, /* n_tasks of these, then what the indexes say */
};

/* What the watcher counted in the process tree. */
struct tree_usage {
	uint64_t cpu_us;
	uint64_t memory_bytes, peak_memory_bytes;
	uint64_t pids, peak_pids;
	uint64_t io_read_bytes, io_write_bytes;
	uint64_t disk_bytes, disk_files; /* in a workspace that has no quota of its own */
	uint64_t deleted_bytes;          /* held there by open files without a name */
};

struct launcher_reply {
	uint32_t ask; /* the ask that is answered */
	uint32_t slot;
	uint32_t failed;
	uint32_t ended; /* 1: this says that the sandbox in slot ended, and was reaped */
	uint32_t layers_held, layers_absent, landlock_abi;
	int32_t outer_pid; /* of the agent, in U */
	struct tree_usage tree;
	struct err err;
};
