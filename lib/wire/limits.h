/* SPDX-License-Identifier: Apache-2.0
 *
 * wire/limits.h - how much a sandbox may use, how much it used, and who saw to it.
 *
 * Plain numbers in fixed structs: they cross from client to warden and back as they are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct limits {
	uint64_t memory_bytes;
	uint64_t disk_bytes; /* the workspace */
	uint64_t disk_files;
	uint64_t tmp_bytes; /* /tmp; counts as memory too */
	uint64_t shm_bytes; /* /dev/shm; likewise */
	uint64_t wall_ms;
	uint64_t cpu_time_ms;  /* 0: no limit */
	uint64_t output_bytes; /* per stream, kept and shown */
	uint64_t io_bytes_per_s;
	uint64_t io_ops_per_s;
	uint32_t cpu_millis; /* thousandths of a core */
	uint32_t pids;
	uint32_t open_files;
	uint32_t ptys;
};

struct profile {
	const char *name;
	struct limits limits;
};

/* The profile of that name, or NULL.  NULL as name is the default, `standard`. */
const struct profile *profile_find(const char *name);

/* All profiles, ended by one without a name. */
const struct profile *profile_all(void);

/* Refuses zero and absurd numbers, and names the one that is wrong. */
int limits_check(const struct limits *limits, struct err *err);

/* What a limit may be; NULL: there is none of that name ("memory", "cpu-time"). */
struct limit_range {
	const char *name;
	size_t at;   /* in struct limits */
	size_t size; /* of the field */
	uint64_t min, max;
	const char *text; /* "16M to 1024G" */
};
const struct limit_range *limit_range_find(const char *name);

/* What a sandbox has used since its start. */
struct usage {
	uint64_t wall_us;
	uint64_t cpu_us;
	uint64_t peak_memory_bytes;
	uint64_t io_read_bytes;
	uint64_t io_write_bytes;
	uint64_t disk_bytes; /* in the workspace, now */
	uint64_t disk_files;
	uint64_t peak_pids;
	uint64_t oom_kills;   /* processes that the kernel (or our watcher) stopped for memory */
	uint64_t pids_denied; /* forks refused at the limit */
	uint32_t disk_full;   /* 1: the workspace reached its limit at least once */
	uint32_t cpu_time_hit;
};

/* By which mechanism a limit is held. */
enum enforcer {
	BY_NOBODY,
	BY_CGROUP2,
	BY_CGROUP1,
	BY_RLIMIT,
	BY_WATCHER, /* the launcher looks at the process tree every 50 ms */
	BY_MOUNT,   /* size= of a tmpfs */
	BY_PROJECT_QUOTA,
	BY_LOOP_FILE, /* the workspace is a file system of that size */
	BY_CLIENT,    /* whoever holds the session: wall clock, output */
	ENFORCERS_
};

const char *enforcer_name(uint32_t by);

struct enforcement {
	uint32_t memory, cpu, pids, disk, disk_files, tmp, open_files, cpu_time, io;
};
