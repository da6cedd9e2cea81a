/* SPDX-License-Identifier: Apache-2.0
 *
 * How much it may use, and how strong the walls must be. */
#include "base/auto.h"
#include "base/err.h"
#include "run_job.h"

#include <string.h>

static int read_profile(struct job *job, const struct run_options *options, struct err *err)
{
	const struct profile *profile = profile_find(options->profile);

	if (!profile)
		return err_make(
			err, ERR_INVALID,
			"the profile '%.64s' does not exist; give tiny, small, standard or large",
			options->profile);
	job->limits = profile->limits;
	return 0;
}

static void set(uint64_t *limit, uint64_t given)
{
	if (given)
		*limit = given;
}

/* Numbers that do not fit are far out of range; limits_check() names them. */
static void set_u32(uint32_t *limit, uint64_t given)
{
	if (given)
		*limit = given > UINT32_MAX ? UINT32_MAX : (uint32_t)given;
}

static int read_tier(struct job *job, const char *name, struct err *err)
{
	int tier = name ? tier_find(name) : TIER_JAIL;

	if (tier < 0)
		return err_make(
			err, ERR_INVALID,
			"the isolation '%.64s' does not exist; give jail, container, gvisor, "
			"microvm or wasm",
			name);
	job->tier = (enum tier)tier;
	if (tier == TIER_JAIL)
		return 0;
	/* Never less than was asked for, and never something else in its place. */
	return err_make(err, ERR_ISOLATION,
			"the isolation '%s' is not available: this build of cay has only 'jail'",
			name);
}

static int read_require(struct job *job, const char *names, struct err *err)
{
	while (*names) {
		size_t len = strcspn(names, ",");
		char name[64];
		snprintf(name, sizeof(name), "%.*s", (int)(len < 63 ? len : 63), names);
		int layer = layer_find(name);
		if (layer < 0)
			return err_make(
				err, ERR_INVALID,
				"the layer '%s' does not exist; `cay doctor` names the layers, "
				"such as landlock,cgroup",
				name);
		job->require |= 1u << layer;
		names += len + (names[len] == ',');
	}
	return 0;
}

int job_read_limits(struct job *job, const struct run_options *options, struct err *err)
{
	int r = read_profile(job, options, err);

	if (r < 0)
		return r;
	set(&job->limits.memory_bytes, options->memory);
	set(&job->limits.disk_bytes, options->disk);
	set(&job->limits.output_bytes, options->output);
	set(&job->limits.wall_ms, options->timeout);
	set(&job->limits.cpu_time_ms, options->cpu_time);
	set_u32(&job->limits.cpu_millis, options->cpus);
	set_u32(&job->limits.pids, options->pids);
	set_u32(&job->limits.open_files, options->open_files);
	r = limits_check(&job->limits, err);
	for (size_t i = 0; r >= 0 && i < options->require.n; i++)
		r = read_require(job, options->require.items[i], err);
	return r < 0 ? r : read_tier(job, options->isolation, err);
}
