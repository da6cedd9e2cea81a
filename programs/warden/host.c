/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include "hostlayer.h"
#include "runs.h"

#include "base/auto.h"
#include "base/err.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct host host = { .ids.lease_fd = -1, .launcher.sock = -1 };

static uint8_t slots[LAUNCHER_SLOTS / 8];

/* The cgroups of different state directories must not meet. */
static void group_name(const char *state_dir, char *ret_name, size_t size)
{
	uint64_t hash = 14695981039346656037ull;
	struct stat st;

	for (const char *c = state_dir; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 1099511628211ull;
	if (stat(state_dir, &st) == 0)
		hash = (hash ^ st.st_ino) * 1099511628211ull;
	snprintf(ret_name, size, "cay-%012llx", (unsigned long long)hash & 0xffffffffffffull);
}

void host_init(const char *state_dir, uint32_t n_slots)
{
	/* Not cut: the beginning of a path is another directory. */
	if (strlen(state_dir) < sizeof(host.state_dir))
		memcpy(host.state_dir, state_dir, strlen(state_dir) + 1);
	host.n_slots = n_slots < LAUNCHER_SLOTS ? n_slots : LAUNCHER_SLOTS;
}

/* Not every system has merged /bin and /lib into /usr. */
static void find_top_dirs(void)
{
	static const char *const names[] = {
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"
	};
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (lstat(names[i], &st) == 0 && S_ISDIR(st.st_mode))
			host.top_dirs[host.n_top_dirs++] = names[i];
}

/* The launcher builds its own part while we do ours. */
static int look_around(struct err *err)
{
	char group[64];

	runs_sweep(host.state_dir);
	find_top_dirs();
	group_name(host.state_dir, group, sizeof(group));
	cgroup_probe(&host.cgroups, group);
	return hostlayer_ensure(host.state_dir, host.layer, sizeof(host.layer), err);
}

int host_ready(struct err *err)
{
	int r = 0;

	if (!host.state_dir[0])
		return err_make(err, ERR_INVALID,
				"the path of the state directory is longer than %zu bytes",
				sizeof(host.state_dir) - 1);
	if (host.ids.lease_fd < 0 && !host.ready) {
		r = ids_lease(&host.ids, host.n_slots, err);
		if (r == 0 && host.ids.n_slots < host.n_slots)
			host.n_slots = host.ids.n_slots;
	}
	if (r == 0 && !host.launcher.pid)
		r = launcher_start(&host.launcher, &host.ids, err);
	if (r == 0 && !host.ready)
		r = look_around(err);
	host.ready = host.ready || r == 0;
	return r;
}

int host_take_slot(uint32_t *ret_slot, struct err *err)
{
	for (uint32_t i = 0; i < host.n_slots; i++) {
		if (slots[i / 8] & 1u << i % 8)
			continue;
		slots[i / 8] |= (uint8_t)(1u << i % 8);
		launcher_forget(&host.launcher, i);
		*ret_slot = i;
		return 0;
	}
	return err_make(err, ERR_LIMIT, "%u sandboxes are there already", host.n_slots);
}

void host_give_slot(uint32_t slot)
{
	if (slot < LAUNCHER_SLOTS)
		slots[slot / 8] &= (uint8_t) ~(1u << slot % 8);
}

void host_finish(void)
{
	launcher_stop(&host.launcher);
	cgroup_probe_finish(&host.cgroups);
	ids_release(&host.ids);
}
