/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define TREE_MAX 8192

struct process {
	pid_t pid, parent;
	uint64_t cpu_ticks;
	bool inside;
};

/* "pid (name) state ppid ... utime stime cutime cstime": the name may hold anything. */
static bool read_stat(int proc_fd, pid_t pid, struct process *ret_process)
{
	char path[32], text[1024];
	uint64_t ticks[4];

	snprintf(path, sizeof(path), "%d/stat", pid);
	if (fd_read_text_at(proc_fd, path, text, sizeof(text)) <= 0)
		return false;
	const char *end = strrchr(text, ')');
	if (!end || sscanf(end,
			   ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %" SCNu64,
			   &ret_process->parent, &ticks[0], &ticks[1], &ticks[2], &ticks[3]) != 5)
		return false;
	ret_process->pid = pid;
	ret_process->cpu_ticks = ticks[0] + ticks[1] + ticks[2] + ticks[3];
	return true;
}

static size_t list_tree(int proc_fd, pid_t agent, struct process *list)
{
	int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0;

	if (!dir)
		return 0;
	for (struct dirent *entry; n < TREE_MAX && (entry = readdir(dir)) != NULL;) {
		pid_t pid = atoi(entry->d_name);
		if (pid > 1 && read_stat(proc_fd, pid, &list[n])) {
			list[n].inside = pid == agent;
			n++;
		}
	}
	/* A child can have a smaller number than its parent: go round until nothing changes. */
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; !list[i].inside && k < n; k++)
				if (list[k].inside && list[i].parent == list[k].pid)
					list[i].inside = changed = true;
	}
	return n;
}

/* false: a thread that is gone has no memory to tell of. */
static bool read_memory(int proc_fd, const char *path, uint64_t *ret_bytes)
{
	char text[8192];
	uint64_t anon = 0, shmem = 0;

	if (fd_read_text_at(proc_fd, path, text, sizeof(text)) <= 0)
		return false;
	const char *at = strstr(text, "\nRssAnon:");
	if (!at)
		return false;
	(void)sscanf(at, "\nRssAnon: %" SCNu64, &anon);
	at = strstr(text, "\nRssShmem:");
	if (at)
		(void)sscanf(at, "\nRssShmem: %" SCNu64, &shmem);
	*ret_bytes = (anon + shmem) * 1024;
	return true;
}

/* A process whose first thread has ended is asked through one that lives. */
static uint64_t memory_of(int proc_fd, pid_t pid)
{
	char path[64];
	uint64_t bytes = 0;

	snprintf(path, sizeof(path), "%d/status", pid);
	if (read_memory(proc_fd, path, &bytes))
		return bytes;
	snprintf(path, sizeof(path), "%d/task", pid);
	int fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		snprintf(path, sizeof(path), "%d/task/%.10s/status", pid, entry->d_name);
		if (entry->d_name[0] != '.' && read_memory(proc_fd, path, &bytes))
			break;
	}
	return bytes;
}

static void add_io(int proc_fd, pid_t pid, struct tree_usage *usage)
{
	char path[32], text[512];
	uint64_t value;

	snprintf(path, sizeof(path), "%d/io", pid);
	if (fd_read_text_at(proc_fd, path, text, sizeof(text)) <= 0)
		return;
	const char *at = strstr(text, "\nread_bytes:");
	if (at && sscanf(at, "\nread_bytes: %" SCNu64, &value) == 1)
		usage->io_read_bytes += value;
	at = strstr(text, "\nwrite_bytes:");
	if (at && sscanf(at, "\nwrite_bytes: %" SCNu64, &value) == 1)
		usage->io_write_bytes += value;
}

void watch_tree(int proc_fd, pid_t agent, struct tree_usage *usage)
{
	static struct process list[TREE_MAX];
	size_t n = list_tree(proc_fd, agent, list);
	uint64_t ticks = 0;

	usage->memory_bytes = usage->pids = 0;
	usage->io_read_bytes = usage->io_write_bytes = 0;
	for (size_t i = 0; i < n; i++) {
		if (!list[i].inside)
			continue;
		ticks += list[i].cpu_ticks;
		if (list[i].pid == agent)
			continue;
		usage->memory_bytes += memory_of(proc_fd, list[i].pid);
		add_io(proc_fd, list[i].pid, usage);
		usage->pids++;
	}
	uint64_t cpu_us = ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	if (cpu_us > usage->cpu_us)
		usage->cpu_us = cpu_us;
	if (usage->memory_bytes > usage->peak_memory_bytes)
		usage->peak_memory_bytes = usage->memory_bytes;
	if (usage->pids > usage->peak_pids)
		usage->peak_pids = usage->pids;
}

void watch_stop_writes(int proc_fd, pid_t agent)
{
	static struct process list[TREE_MAX];
	size_t n = list_tree(proc_fd, agent, list);
	struct rlimit none = { 0, 0 };

	for (size_t i = 0; i < n; i++)
		if (list[i].inside && list[i].pid != agent)
			(void)prlimit(list[i].pid, RLIMIT_FSIZE, &none, NULL);
}

void watch_kill_code(int proc_fd, pid_t agent)
{
	static struct process list[TREE_MAX];

	/* A fork between the look and the kill escapes the first round. */
	for (int round = 0; round < 8; round++) {
		size_t n = list_tree(proc_fd, agent, list), hit = 0;
		for (size_t i = 0; i < n; i++)
			if (list[i].inside && list[i].pid != agent &&
			    kill(list[i].pid, SIGKILL) == 0)
				hit++;
		if (hit == 0)
			return;
	}
}

#define DISK_DEPTH 128     /* directories open at the same time */
#define DISK_LATER 256     /* directories below that, counted one after the other */
#define DISK_MS 400        /* for one look */
#define DISK_NAMES 2000000 /* a tree with more cannot be counted in time, and is taken for full */

struct count {
	uint64_t bytes, names;
	int64_t until_ms;
	int later[DISK_LATER];
	unsigned n_later;
};

/* What lies too deep waits its turn; where too much waits, the tree is taken for full. */
static void count_later(struct count *count, int dir_fd)
{
	if (count->n_later < DISK_LATER) {
		count->later[count->n_later++] = dir_fd;
		return;
	}
	close(dir_fd);
	count->names = DISK_NAMES;
}

static bool may_go_on(const struct count *count)
{
	return count->names < DISK_NAMES &&
	       (count->names % 1024 || clock_mono_ms() < count->until_ms);
}

static void count_dir(int dir_fd, unsigned depth, struct count *count)
{
	auto_closedir DIR *dir = fdopendir(dir_fd);
	struct stat st;

	if (!dir) {
		close(dir_fd);
		return;
	}
	for (struct dirent *entry; may_go_on(count) && (entry = readdir(dir)) != NULL;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		/* Of a file with several names each counts for its part. */
		count->bytes += (uint64_t)st.st_blocks * 512 /
				(st.st_nlink > 1 && !S_ISDIR(st.st_mode) ? st.st_nlink : 1);
		count->names++;
		if (!S_ISDIR(st.st_mode))
			continue;
		int child = path_open_beneath(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY, 0);
		if (child >= 0 && depth == DISK_DEPTH)
			count_later(count, child);
		else if (child >= 0)
			count_dir(child, depth + 1, count);
	}
}

void watch_disk(int dir_fd, struct tree_usage *usage)
{
	struct count count = { .until_ms = clock_mono_ms() + DISK_MS };
	int fd = path_open_beneath(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return;
	count_dir(fd, 0, &count);
	while (count.n_later > 0)
		count_dir(count.later[--count.n_later], 0, &count);
	/* A look that ran out of time saw only a part. */
	bool is_whole = clock_mono_ms() < count.until_ms;
	if (is_whole || count.bytes > usage->disk_bytes)
		usage->disk_bytes = count.bytes;
	if (is_whole || count.names > usage->disk_files)
		usage->disk_files = count.names;
}

#define FILES_MAX 65536 /* descriptors of one look */
#define SEEN_MAX 4096   /* files in it that count */

struct held {
	struct {
		dev_t device;
		ino_t inode;
	} seen[SEEN_MAX];
	size_t n_seen, n_files;
	dev_t memory, workspace;
	uint64_t memory_bytes, deleted_bytes;
};

/* One file can be open many times. */
static bool is_new(struct held *held, const struct stat *st)
{
	for (size_t i = 0; i < held->n_seen; i++)
		if (held->seen[i].inode == st->st_ino && held->seen[i].device == st->st_dev)
			return false;
	if (held->n_seen < SEEN_MAX) {
		held->seen[held->n_seen].device = st->st_dev;
		held->seen[held->n_seen++].inode = st->st_ino;
	}
	return true;
}

static void add_files_of(int proc_fd, pid_t pid, struct held *held)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "%d/fd", pid);
	int fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *entry;
	     dir && held->n_files < FILES_MAX && (entry = readdir(dir)) != NULL;) {
		held->n_files++;
		if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (st.st_dev == held->memory && is_new(held, &st))
			held->memory_bytes += (uint64_t)st.st_blocks * 512;
		else if (st.st_dev == held->workspace && st.st_nlink == 0 && is_new(held, &st))
			held->deleted_bytes += (uint64_t)st.st_blocks * 512;
	}
}

static uint64_t used_of(int proc_fd, pid_t agent, const char *name)
{
	char path[48];
	struct statfs fs;

	snprintf(path, sizeof(path), "%d/root/%s", agent, name);
	auto_close int fd = openat(proc_fd, path, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return 0;
	return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

/* Every memory file lies in one file system of the kernel's own. */
static dev_t memory_device(void)
{
	static dev_t device;
	struct stat st;

	if (device == 0) {
		auto_close int fd = sys_memfd_create("probe", 0);
		if (fd >= 0 && fstat(fd, &st) == 0)
			device = st.st_dev;
	}
	return device;
}

void watch_files(int proc_fd, pid_t agent, int workspace_fd, struct tree_usage *usage)
{
	static struct process list[TREE_MAX];
	static struct held held;
	size_t n = list_tree(proc_fd, agent, list);
	struct stat st;

	held.n_seen = held.n_files = 0;
	held.memory_bytes = held.deleted_bytes = 0;
	held.memory = memory_device();
	held.workspace = workspace_fd >= 0 && fstat(workspace_fd, &st) == 0 ? st.st_dev : (dev_t)-1;
	for (size_t i = 0; i < n; i++)
		if (list[i].inside && list[i].pid != agent)
			add_files_of(proc_fd, list[i].pid, &held);
	usage->memory_bytes += held.memory_bytes + used_of(proc_fd, agent, "tmp") +
			       used_of(proc_fd, agent, "dev/shm");
	if (usage->memory_bytes > usage->peak_memory_bytes)
		usage->peak_memory_bytes = usage->memory_bytes;
	if (workspace_fd >= 0)
		usage->deleted_bytes = held.deleted_bytes;
}
