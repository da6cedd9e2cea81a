/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/limits.h"

#include "base/auto.h"
#include "base/err.h"
#include "check.h"

#include <errno.h>

static struct err err;

TEST(profiles_are_all_within_the_limits)
{
	int n = 0;

	for (const struct profile *p = profile_all(); p->name; p++, n++) {
		CHECK_INT(limits_check(&p->limits, &err), 0);
		CHECK(profile_find(p->name) == p);
	}
	CHECK_INT(n, 4);
	CHECK(profile_find(NULL) == profile_find("standard"));
	CHECK(profile_find("huge") == NULL);
	CHECK(profile_find("") == NULL);
}

TEST(profiles_are_what_the_manual_says)
{
	static const struct {
		const char *name;
		uint64_t wall_s, memory_mib, disk_mib, cpu_millis;
	} want[] = {
		{ "tiny", 5, 256, 64, 1000 },
		{ "small", 30, 512, 100, 1000 },
		{ "standard", 120, 1024, 2048, 1000 },
		{ "large", 300, 4096, 8192, 2000 },
	};

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		const struct limits *limits = &profile_find(want[i].name)->limits;
		CHECK_INT(limits->wall_ms, want[i].wall_s * 1000);
		CHECK_INT(limits->memory_bytes, want[i].memory_mib << 20);
		CHECK_INT(limits->disk_bytes, want[i].disk_mib << 20);
		CHECK_INT(limits->cpu_millis, want[i].cpu_millis);
		CHECK_INT(limits->pids, 128);
		CHECK_INT(limits->open_files, 4096);
		CHECK_INT(limits->output_bytes, 512 << 10);
		CHECK_INT(limits->cpu_time_ms, 0);
	}
}

#define WIDE(field, name, may_be_zero)                                                             \
	{                                                                                          \
		name, offsetof(struct limits, field), sizeof(((struct limits *)0)->field),         \
			may_be_zero                                                                \
	}

TEST(limits_check_refuses_zero_and_the_absurd_and_names_them)
{
	static const struct {
		const char *name;
		size_t offset, size;
		bool may_be_zero;
	} fields[] = {
		WIDE(memory_bytes, "memory", false),
		WIDE(disk_bytes, "disk", false),
		WIDE(disk_files, "disk files", false),
		WIDE(tmp_bytes, "tmp", false),
		WIDE(shm_bytes, "shm", false),
		WIDE(wall_ms, "timeout", false),
		WIDE(cpu_time_ms, "cpu-time", true),
		WIDE(output_bytes, "output", false),
		WIDE(io_bytes_per_s, "disk I/O", false),
		WIDE(io_ops_per_s, "disk operations", false),
		WIDE(cpu_millis, "cpus", false),
		WIDE(pids, "pids", false),
		WIDE(open_files, "open-files", false),
		WIDE(ptys, "ptys", false),
	};
	size_t seen = 0;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		struct limits limits = profile_find(NULL)->limits;
		char want[64];
		snprintf(want, sizeof(want), "the limit '%s' must be ", fields[i].name);
		memset((char *)&limits + fields[i].offset, 0, fields[i].size);
		CHECK_INT(limits_check(&limits, &err), fields[i].may_be_zero ? 0 : -EINVAL);
		if (!fields[i].may_be_zero)
			CHECK_INT(strncmp(err.text, want, strlen(want)), 0);
		memset((char *)&limits + fields[i].offset, 0xff, fields[i].size);
		CHECK_INT(limits_check(&limits, &err), -EINVAL);
		CHECK_INT(strncmp(err.text, want, strlen(want)), 0);
		seen += fields[i].size;
	}
	CHECK_INT(seen, sizeof(struct limits)); /* a new limit gets its rule, and its line here */
}

TEST(limits_check_takes_the_ends_of_a_range)
{
	struct limits limits = profile_find(NULL)->limits;

	limits.memory_bytes = 16u << 20;
	limits.pids = 1;
	limits.wall_ms = 7 * 86400000ull;
	CHECK_INT(limits_check(&limits, &err), 0);
	limits.memory_bytes--;
	CHECK_INT(limits_check(&limits, &err), -EINVAL);
	limits.memory_bytes++;
	limits.wall_ms++;
	CHECK_INT(limits_check(&limits, &err), -EINVAL);
}

TEST(enforcers_have_names_and_foreign_numbers_do_not_crash)
{
	for (uint32_t i = 0; i < ENFORCERS_; i++)
		CHECK(strcmp(enforcer_name(i), "unknown") != 0);
	CHECK_STR(enforcer_name(BY_CGROUP2), "cgroup2");
	CHECK_STR(enforcer_name(ENFORCERS_), "unknown");
	CHECK_STR(enforcer_name(UINT32_MAX), "unknown");
}
