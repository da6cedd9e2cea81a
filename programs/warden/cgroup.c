/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define PERIOD_US 100000
#define SOCKETS_MAX (64ull << 20)
#define CROWD 8              /* processes */
#define ROUNDING_BYTES 65536 /* the largest page there is */

/* The directory that has the controller, or -1. */
static int dir_of(const struct cgroup *cgroup, enum controller controller)
{
	if (!cgroup->host)
		return -1;
	for (size_t i = 0; i < cgroup->host->n; i++)
		if (cgroup->host->at[i].controllers & 1u << controller)
			return cgroup->dir[i];
	return -1;
}

static bool is_v2(const struct cgroup *cgroup)
{
	return cgroup->host->version == 2;
}

static int read_number(int dir, const char *file, uint64_t *ret_value)
{
	char text[64];

	if (dir < 0 || fd_read_text_at(dir, file, text, sizeof(text)) <= 0)
		return -ENOENT;
	return sscanf(text, "%" SCNu64, ret_value) == 1 ? 0 : -EINVAL;
}

/* The number behind "key " at the start of a line, or added up over all lines as in io.stat. */
static uint64_t read_key(int dir, const char *file, const char *key, bool all)
{
	char text[8192];
	uint64_t sum = 0;
	size_t len = strlen(key);

	if (dir < 0 || fd_read_text_at(dir, file, text, sizeof(text)) <= 0)
		return 0;
	for (const char *at = text; (at = strstr(at, key)) != NULL; at += len) {
		uint64_t value = 0;
		if (at != text && at[-1] != '\n' && at[-1] != ' ')
			continue;
		if (sscanf(at + len, "%" SCNu64, &value) == 1)
			sum += value;
		if (!all)
			break;
	}
	return sum;
}

static int write_limit(int dir, const char *file, const char *value, struct err *err)
{
	int r = fd_write_text_at(dir, file, value);

	if (r < 0)
		return err_errno(err, -r, "write '%s' to the cgroup's '%s'", value, file);
	return 0;
}

/* Writes a limit and reads it back through the same descriptor. */
static int write_number(int dir, const char *file, uint64_t value, struct err *err)
{
	char text[32], seen[32] = "";
	uint64_t got = 0;

	snprintf(text, sizeof(text), "%" PRIu64, value);
	auto_close int fd = openat(dir, file, O_RDWR | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return err_errno(err, errno, "write '%s' to the cgroup's '%s'", text, file);
	/* The kernel rounds memory down to pages. */
	if (pread(fd, seen, sizeof(seen) - 1, 0) <= 0 || sscanf(seen, "%" SCNu64, &got) != 1 ||
	    got > value || got + ROUNDING_BYTES <= value)
		return err_make(err, ERR_SETUP, "the cgroup's '%s' is %" PRIu64 " instead of %s",
				file, got, text);
	return 0;
}

static int set_memory(struct cgroup *cgroup, uint64_t bytes, struct err *err)
{
	int dir = dir_of(cgroup, CTL_MEMORY);

	if (is_v2(cgroup)) {
		int r = write_number(dir, "memory.max", bytes, err);
		if (r == 0)
			(void)fd_write_text_at(dir, "memory.swap.max",
					       "0"); /* absent without swap */
		return r;
	}
	/* Buffers of sockets are counted apart in v1, and not at all until they have a limit. */
	uint64_t sockets = bytes / 4 < SOCKETS_MAX ? bytes / 4 : SOCKETS_MAX;
	if (faccessat(dir, "memory.kmem.tcp.limit_in_bytes", F_OK, 0) == 0) {
		int r = write_number(dir, "memory.kmem.tcp.limit_in_bytes", sockets, err);
		if (r < 0)
			return r;
	}
	/* memsw can never be below limit_in_bytes: lift it first, then set it again. */
	(void)fd_write_text_at(dir, "memory.memsw.limit_in_bytes", "-1");
	int r = write_number(dir, "memory.limit_in_bytes", bytes, err);
	if (r < 0)
		return r;
	char text[32];
	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	(void)fd_write_text_at(dir, "memory.memsw.limit_in_bytes", text); /* absent without swap */
	return 0;
}

static int set_cpu(struct cgroup *cgroup, uint32_t millis, struct err *err)
{
	int dir = dir_of(cgroup, CTL_CPU);
	uint64_t quota = (uint64_t)millis * PERIOD_US / 1000;
	char text[64];

	if (dir < 0)
		return 0;
	if (is_v2(cgroup)) {
		snprintf(text, sizeof(text), "%" PRIu64 " %d", quota, PERIOD_US);
		return write_limit(dir, "cpu.max", text, err);
	}
	snprintf(text, sizeof(text), "%d", PERIOD_US);
	int r = write_limit(dir, "cpu.cfs_period_us", text, err);
	return r < 0 ? r : write_number(dir, "cpu.cfs_quota_us", quota, err);
}

int cgroup_set_limits(struct cgroup *cgroup, const struct limits *limits, struct err *err)
{
	int r = set_memory(cgroup, limits->memory_bytes, err);

	if (r == 0 && dir_of(cgroup, CTL_PIDS) >= 0)
		r = write_number(dir_of(cgroup, CTL_PIDS), "pids.max", limits->pids, err);
	return r < 0 ? r : set_cpu(cgroup, limits->cpu_millis, err);
}

/* Makes base/group/leaf.  Another run may remove an empty group between our two calls. */
static int make_leaf(const struct cgroup_hierarchy *at, const char *group, const char *leaf,
		     bool v2, struct err *err)
{
	char path[160];

	for (int tries = 0; tries < 100; tries++) {
		if (mkdirat(at->base_fd, group, 0755) < 0 && errno != EEXIST)
			return err_errno(err, errno, "make the cgroup '%s/%s'", at->base, group);
		if (v2) {
			auto_close int dir = openat(at->base_fd, group, O_PATH | O_CLOEXEC);
			(void)fd_write_text_at(dir, "cgroup.subtree_control", "+memory");
			(void)fd_write_text_at(dir, "cgroup.subtree_control", "+pids");
			(void)fd_write_text_at(dir, "cgroup.subtree_control", "+cpu");
			(void)fd_write_text_at(dir, "cgroup.subtree_control", "+io");
		}
		snprintf(path, sizeof(path), "%s/%s", group, leaf);
		if (mkdirat(at->base_fd, path, 0755) == 0 || errno == EEXIST) {
			int fd = openat(at->base_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (fd >= 0)
				return fd;
		}
		if (errno != ENOENT)
			break;
	}
	return err_errno(err, errno, "make the cgroup '%s/%s/%s'", at->base, group, leaf);
}

int cgroup_create(struct cgroup *cgroup, const struct cgroup_host *host, const char *leaf,
		  const struct limits *limits, struct err *err)
{
	struct stat st;

	*cgroup = (struct cgroup){ .host = host };
	snprintf(cgroup->leaf, sizeof(cgroup->leaf), "%s", leaf);
	for (size_t i = 0; i < CGROUP_LEAF_MAX; i++)
		cgroup->dir[i] = -1;
	for (size_t i = 0; i < host->n; i++) {
		int fd = make_leaf(&host->at[i], host->group, leaf, host->version == 2, err);
		if (fd < 0)
			return fd;
		cgroup->dir[i] = fd;
		if (fstat(fd, &st) == 0)
			cgroup->inode[i] = st.st_ino;
	}
	return cgroup_set_limits(cgroup, limits, err);
}

/* Limits hold for whole disks: a partition's number is turned into its disk's. */
static dev_t whole_disk(dev_t device)
{
	char path[96], text[32];
	unsigned major_nr, minor_nr;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(device),
		 minor(device));
	if (faccessat(AT_FDCWD, path, F_OK, 0) < 0)
		return device;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major(device), minor(device));
	if (fd_read_text_at(AT_FDCWD, path, text, sizeof(text)) > 0 &&
	    sscanf(text, "%u:%u", &major_nr, &minor_nr) == 2)
		return makedev(major_nr, minor_nr);
	return device;
}

void cgroup_limit_io(struct cgroup *cgroup, dev_t device, const struct limits *limits)
{
	static const struct {
		const char *file;
		bool ops;
	} v1[] = {
		{ "blkio.throttle.read_bps_device", false },
		{ "blkio.throttle.write_bps_device", false },
		{ "blkio.throttle.read_iops_device", true },
		{ "blkio.throttle.write_iops_device", true },
	};
	int dir = cgroup->host ? dir_of(cgroup, CTL_IO) : -1;
	dev_t disk = whole_disk(device);
	char text[160];

	if (dir < 0 || major(disk) == 0)
		return;
	if (is_v2(cgroup)) {
		snprintf(text, sizeof(text),
			 "%u:%u rbps=%" PRIu64 " wbps=%" PRIu64 " riops=%" PRIu64 " wiops=%" PRIu64,
			 major(disk), minor(disk), limits->io_bytes_per_s, limits->io_bytes_per_s,
			 limits->io_ops_per_s, limits->io_ops_per_s);
		cgroup->has_io = fd_write_text_at(dir, "io.max", text) == 0;
		return;
	}
	cgroup->has_io = true;
	for (size_t i = 0; i < ARRAY_LEN(v1); i++) {
		snprintf(text, sizeof(text), "%u:%u %" PRIu64, major(disk), minor(disk),
			 v1[i].ops ? limits->io_ops_per_s : limits->io_bytes_per_s);
		if (fd_write_text_at(dir, v1[i].file, text) < 0)
			cgroup->has_io = false;
	}
}

int cgroup_open_tasks(const struct cgroup *cgroup, int ret_tasks[CGROUP_LEAF_MAX], struct err *err)
{
	const struct cgroup_host *host = cgroup->host;
	/* In v1 `tasks` spares the writer a grace period of milliseconds. */
	const char *file = host->version == 2 ? "cgroup.procs" : "tasks";

	for (size_t i = 0; i < host->n; i++) {
		ret_tasks[i] = openat(cgroup->dir[i], file, O_WRONLY | O_CLOEXEC);
		if (ret_tasks[i] >= 0)
			continue;
		int r = err_errno(err, errno, "open '%s' of the cgroup", file);
		while (i > 0)
			close(ret_tasks[--i]);
		return r;
	}
	return (int)host->n;
}

bool cgroup_is_crowded(const struct cgroup *cgroup)
{
	uint64_t now = 0;

	return read_number(dir_of(cgroup, CTL_PIDS), "pids.current", &now) == 0 && now > CROWD;
}

int cgroup_freeze(struct cgroup *cgroup, bool frozen, struct err *err)
{
	int dir = dir_of(cgroup, CTL_FREEZER);

	if (dir < 0)
		return err_make(err, ERR_UNSUPPORTED, "no cgroup here can freeze");
	if (is_v2(cgroup))
		return write_limit(dir, "cgroup.freeze", frozen ? "1" : "0", err);
	return write_limit(dir, "freezer.state", frozen ? "FROZEN" : "THAWED", err);
}

void cgroup_lift_quota(struct cgroup *cgroup)
{
	int dir = dir_of(cgroup, CTL_CPU);

	if (dir < 0)
		return;
	/* Without it they die all the same, only later. */
	if (is_v2(cgroup))
		(void)fd_write_text_at(dir, "cpu.max", "max");
	else
		(void)fd_write_text_at(dir, "cpu.cfs_quota_us", "-1");
}

static void usage_v1(struct cgroup *cgroup, struct usage *usage)
{
	int memory = dir_of(cgroup, CTL_MEMORY);
	uint64_t ns = 0;

	(void)read_number(memory, "memory.max_usage_in_bytes", &usage->peak_memory_bytes);
	usage->oom_kills = read_key(memory, "memory.oom_control", "oom_kill ", false);
	if (read_number(dir_of(cgroup, CTL_CPUACCT), "cpuacct.usage", &ns) == 0)
		usage->cpu_us = ns / 1000;
	int io = dir_of(cgroup, CTL_IO);
	usage->io_read_bytes = read_key(io, "blkio.throttle.io_service_bytes", "Read ", true);
	usage->io_write_bytes = read_key(io, "blkio.throttle.io_service_bytes", "Write ", true);
}

static void usage_v2(struct cgroup *cgroup, struct usage *usage)
{
	int dir = cgroup->dir[0];

	if (read_number(dir, "memory.peak", &usage->peak_memory_bytes) < 0) {
		uint64_t now = 0; /* before Linux 5.19: the highest that we saw */
		(void)read_number(dir, "memory.current", &now);
		if (now > usage->peak_memory_bytes)
			usage->peak_memory_bytes = now;
	}
	usage->oom_kills = read_key(dir, "memory.events", "oom_kill ", false);
	usage->cpu_us = read_key(dir, "cpu.stat", "usage_usec ", false);
	usage->io_read_bytes = read_key(dir, "io.stat", "rbytes=", true);
	usage->io_write_bytes = read_key(dir, "io.stat", "wbytes=", true);
}

void cgroup_usage(struct cgroup *cgroup, struct usage *usage)
{
	if (!cgroup->host)
		return;
	if (is_v2(cgroup))
		usage_v2(cgroup, usage);
	else
		usage_v1(cgroup, usage);

	int pids = dir_of(cgroup, CTL_PIDS);
	uint64_t now = 0;
	usage->pids_denied = read_key(pids, "pids.events", "max ", false);
	if (read_number(pids, "pids.peak", &now) < 0)
		(void)read_number(pids, "pids.current", &now);
	if (now > cgroup->peak_pids)
		cgroup->peak_pids = now;
	usage->peak_pids = cgroup->peak_pids;
}

void cgroup_enforcement(const struct cgroup *cgroup, struct enforcement *by)
{
	if (!cgroup->host)
		return;
	uint32_t us = is_v2(cgroup) ? BY_CGROUP2 : BY_CGROUP1;
	by->memory = us;
	if (dir_of(cgroup, CTL_PIDS) >= 0)
		by->pids = us;
	if (dir_of(cgroup, CTL_CPU) >= 0)
		by->cpu = us;
	if (dir_of(cgroup, CTL_CPUACCT) >= 0)
		by->cpu_time = us;
	if (cgroup->has_io)
		by->io = us;
}

void cgroup_destroy(struct cgroup *cgroup)
{
	char path[160];

	if (!cgroup->host)
		return;
	for (size_t i = 0; i < cgroup->host->n; i++) {
		const struct cgroup_hierarchy *at = &cgroup->host->at[i];
		if (cgroup->dir[i] < 0)
			continue;
		drop_fd(&cgroup->dir[i]);
		snprintf(path, sizeof(path), "%s/%s", cgroup->host->group, cgroup->leaf);
		/* The last zombie may take a moment to leave. */
		for (int tries = 0; tries < 200; tries++) {
			if (unlinkat(at->base_fd, path, AT_REMOVEDIR) == 0 || errno != EBUSY)
				break;
			usleep(1000);
		}
	}
	cgroup->host = NULL;
}
