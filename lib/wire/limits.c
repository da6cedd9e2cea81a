/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/limits.h"

#include "base/auto.h"
#include "base/err.h"

#include <string.h>

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

#define COMMON                                                                                     \
	.output_bytes = 512 * KIB, .io_bytes_per_s = 256 * MIB, .io_ops_per_s = 10000,             \
	.pids = 128, .open_files = 4096, .ptys = 64

static const struct profile profiles[] = {
	{ "tiny",
	  { .memory_bytes = 256 * MIB,
	    .disk_bytes = 64 * MIB,
	    .disk_files = 20000,
	    .tmp_bytes = 64 * MIB,
	    .shm_bytes = 32 * MIB,
	    .wall_ms = 5000,
	    .cpu_millis = 1000,
	    COMMON } },
	{ "small",
	  { .memory_bytes = 512 * MIB,
	    .disk_bytes = 100 * MIB,
	    .disk_files = 50000,
	    .tmp_bytes = 100 * MIB,
	    .shm_bytes = 64 * MIB,
	    .wall_ms = 30000,
	    .cpu_millis = 1000,
	    COMMON } },
	{ "standard",
	  { .memory_bytes = 1 * GIB,
	    .disk_bytes = 2 * GIB,
	    .disk_files = 200000,
	    .tmp_bytes = 100 * MIB,
	    .shm_bytes = 64 * MIB,
	    .wall_ms = 120000,
	    .cpu_millis = 1000,
	    COMMON } },
	{ "large",
	  { .memory_bytes = 4 * GIB,
	    .disk_bytes = 8 * GIB,
	    .disk_files = 800000,
	    .tmp_bytes = 512 * MIB,
	    .shm_bytes = 256 * MIB,
	    .wall_ms = 300000,
	    .cpu_millis = 2000,
	    COMMON } },
	{ 0 },
};

const struct profile *profile_all(void)
{
	return profiles;
}

const struct profile *profile_find(const char *name)
{
	if (!name)
		name = "standard";
	for (const struct profile *p = profiles; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

#define FIELD(field) offsetof(struct limits, field), sizeof(((struct limits *)NULL)->field)

static const struct limit_range ranges[] = {
	{ "memory", FIELD(memory_bytes), 16 * MIB, 1024 * GIB, "16M to 1024G" },
	{ "disk", FIELD(disk_bytes), 1 * MIB, 16384 * GIB, "1M to 16384G" },
	{ "disk files", FIELD(disk_files), 16, 1000000000, "16 to 1000000000" },
	{ "tmp", FIELD(tmp_bytes), 64 * KIB, 1024 * GIB, "64K to 1024G" },
	{ "shm", FIELD(shm_bytes), 64 * KIB, 1024 * GIB, "64K to 1024G" },
	{ "timeout", FIELD(wall_ms), 1, 7 * 86400000ull, "1ms to 7d" },
	{ "cpu-time", FIELD(cpu_time_ms), 0, 7 * 86400000ull, "1ms to 7d" },
	{ "output", FIELD(output_bytes), 1 * KIB, 64 * MIB, "1K to 64M" },
	{ "disk I/O", FIELD(io_bytes_per_s), 64 * KIB, 1024 * GIB, "64K to 1024G per second" },
	{ "disk operations", FIELD(io_ops_per_s), 10, 1000000000, "10 or more per second" },
	{ "cpus", FIELD(cpu_millis), 10, 1024000, "0.01 to 1024" },
	{ "pids", FIELD(pids), 1, 4194304, "1 to 4194304" },
	{ "open-files", FIELD(open_files), 16, 1048576, "16 to 1048576" },
	{ "ptys", FIELD(ptys), 1, 4096, "1 to 4096" },
};

const struct limit_range *limit_range_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (strcmp(ranges[i].name, name) == 0)
			return &ranges[i];
	return NULL;
}

static uint64_t read_field(const struct limits *limits, const struct limit_range *range)
{
	uint64_t wide = 0;
	uint32_t narrow = 0;

	if (range->size == sizeof(wide)) {
		memcpy(&wide, (const char *)limits + range->at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, (const char *)limits + range->at, sizeof(narrow));
	return narrow;
}

int limits_check(const struct limits *limits, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		uint64_t value = read_field(limits, &ranges[i]);
		if (value < ranges[i].min || value > ranges[i].max)
			return err_make(err, ERR_INVALID, "the limit '%s' must be %s",
					ranges[i].name, ranges[i].text);
	}
	return 0;
}

const char *enforcer_name(uint32_t by)
{
	static const char *const names[ENFORCERS_] = {
		[BY_NOBODY] = "none",
		[BY_CGROUP2] = "cgroup2",
		[BY_CGROUP1] = "cgroup1",
		[BY_RLIMIT] = "rlimit",
		[BY_WATCHER] = "watcher",
		[BY_MOUNT] = "mount",
		[BY_PROJECT_QUOTA] = "project_quota",
		[BY_LOOP_FILE] = "loop_file",
		[BY_CLIENT] = "cay",
	};

	return by < ENFORCERS_ ? names[by] : "unknown";
}
