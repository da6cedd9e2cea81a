/* SPDX-License-Identifier: Apache-2.0 */
#include "runs.h"

#include "launcher.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

static int open_runs(const char *state_dir, struct err *err)
{
	auto_close int state = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (state < 0)
		return err_errno(err, errno, "open the state directory '%s'", state_dir);
	if (mkdirat(state, "runs", 0700) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s/runs'", state_dir);
	int fd = openat(state, "runs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_errno(err, errno, "open '%s/runs'", state_dir) : fd;
}

static int lock_dir(int dir_fd, int flags)
{
	auto_close int fd = openat(dir_fd, "lock", O_RDWR | flags | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return take_fd(&fd);
}

/* It gets its name when it is locked, and until then the lock of `runs` is shared, so that no
 * sweeper takes it for dead. */
static int make_locked(struct run *run, struct err *err)
{
	char fresh[ID_SIZE + 1];
	int r = 0;

	snprintf(fresh, sizeof(fresh), ".%s", run->id);
	if (flock(run->runs_fd, LOCK_SH) < 0 || mkdirat(run->runs_fd, fresh, 0700) < 0)
		return err_errno(err, errno, "make '%s'", run->path);
	run->dir_fd = openat(run->runs_fd, fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	run->lock_fd = run->dir_fd < 0 ? -errno : lock_dir(run->dir_fd, O_CREAT);
	if (run->lock_fd < 0 || renameat(run->runs_fd, fresh, run->runs_fd, run->id) < 0) {
		r = err_errno(err, run->lock_fd < 0 ? -run->lock_fd : errno, "lock '%s'",
			      run->path);
		(void)path_remove_tree(run->runs_fd, fresh);
	}
	(void)flock(run->runs_fd, LOCK_UN);
	return r;
}

int run_create(struct run *run, const char *state_dir, const char *id, struct err *err)
{
	*run = (struct run){ .runs_fd = -1, .dir_fd = -1, .lock_fd = -1 };
	snprintf(run->id, sizeof(run->id), "%s", id);
	if ((size_t)snprintf(run->path, sizeof(run->path), "%s/runs/%s", state_dir, id) >=
	    sizeof(run->path))
		return err_make(err, ERR_INVALID, "the path of the state directory is too long");
	run->runs_fd = open_runs(state_dir, err);
	if (run->runs_fd < 0)
		return run->runs_fd;

	return make_locked(run, err);
}

int run_record(const struct run *run, const struct ids *ids, const struct cgroup *cgroup,
	       struct err *err)
{
	char text[8192];
	size_t len = (size_t)snprintf(text, sizeof(text), "ids %d %u %u %u %u\n", (int)ids->mode,
				      ids->uid_first, ids->gid_first, ids->slot_size, ids->n_slots);

	for (size_t i = 0; cgroup->host && i < cgroup->host->n && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"cgroup %020" PRIu64 " %s/%s/%s\n",
					(uint64_t)cgroup->inode[i], cgroup->host->at[i].base,
					cgroup->host->group, cgroup->leaf);
	if (len >= sizeof(text))
		return err_make(err, ERR_LIMIT, "the record of a run is too long");
	/* The second one is written over the first and just as long: no moment without a record. */
	auto_close int fd =
		openat(run->dir_fd, "record", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : fd_write_all(fd, text, len);
	return r < 0 ? err_errno(err, -r, "write the record of '%s'", run->path) : 0;
}

void run_destroy(struct run *run)
{
	if (run->runs_fd >= 0)
		(void)path_remove_tree(run->runs_fd, run->id);
	drop_fd(&run->dir_fd);
	drop_fd(&run->lock_fd);
	drop_fd(&run->runs_fd);
}

/* What is still in a dead run's cgroup has lost its agent. */
static void kill_some(int cgroup)
{
	char text[4096];
	auto_close int fd = openat(cgroup, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	const char *at = text;

	/* A number that is cut at the end of the buffer would be somebody else's. */
	for (const char *end; n > 0 && (end = memchr(at, '\n', (size_t)(text + n - at))) != NULL;
	     at = end + 1)
		if (atoi(at) > 1)
			(void)kill(atoi(at), SIGKILL);
}

static void remove_cgroup(const char *line, const char *id)
{
	uint64_t inode;
	char path[640];
	struct stat st;

	if (sscanf(line, "cgroup %" SCNu64 " %639[^\n]", &inode, path) != 2 || path[0] != '/')
		return;
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0)
		return;
	/* Without an inode the warden died while it made this one: then it has the run's name,
	 * which is 128 random bits. */
	if (inode ? (uint64_t)st.st_ino != inode : strcmp(strrchr(path, '/') + 1, id) != 0)
		return;
	for (int tries = 0; tries < 100; tries++) {
		if (unlinkat(AT_FDCWD, path, AT_REMOVEDIR) == 0 || errno != EBUSY)
			break;
		kill_some(dir);
		usleep(5000);
	}
	*strrchr(path, '/') = '\0';
	(void)unlinkat(AT_FDCWD, path, AT_REMOVEDIR); /* goes with the last run in it */
}

/* Files that belong to uids of the dead sandbox: only a namespace that maps them can. */
static void remove_in_outer(const char *line, const char *path)
{
	struct ids ids = {
		.mode = IDS_RANGES, .own_uid = geteuid(), .own_gid = getegid(), .lease_fd = -1
	};
	struct launcher launcher;
	struct launcher_reply reply;
	static struct plan plan;
	struct err err;
	int mode;

	if (sscanf(line, "ids %d %u %u %u %u", &mode, &ids.uid_first, &ids.gid_first,
		   &ids.slot_size, &ids.n_slots) != 5 ||
	    mode != IDS_RANGES || launcher_start(&launcher, &ids, &err) < 0)
		return;
	plan = (struct plan){ .ask = LAUNCHER_REMOVE };
	snprintf(plan.remove_path, sizeof(plan.remove_path), "%s", path);
	(void)launcher_ask(&launcher, &plan, sizeof(plan), NULL, 0, &reply, NULL, &err);
	launcher_stop(&launcher);
}

static void sweep_one(int runs_fd, const char *state_dir, const char *name)
{
	char record[8192] = "", path[1024];

	auto_close int dir = openat(runs_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return;
	/* One that is just being made has no lock yet; its maker holds that of `runs`. */
	if (name[0] == '.' && flock(runs_fd, LOCK_EX | LOCK_NB) < 0)
		return;
	if (name[0] == '.')
		(void)flock(runs_fd, LOCK_UN);
	auto_close int lock = lock_dir(dir, 0);
	if (lock < 0 && lock != -ENOENT)
		return;
	if (fd_read_text_at(dir, "record", record, sizeof(record)) > 0)
		for (char *line = record; *line; line += strcspn(line, "\n") + 1)
			if (strncmp(line, "cgroup ", 7) == 0)
				remove_cgroup(line, name + (name[0] == '.'));
	if (path_remove_tree(runs_fd, name) == 0)
		return;
	if ((size_t)snprintf(path, sizeof(path), "%s/runs/%s", state_dir, name) < sizeof(path))
		remove_in_outer(record, path);
}

void runs_sweep(const char *state_dir)
{
	struct err err;
	int fd = open_runs(state_dir, &err);
	auto_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	if (!dir)
		return; /* the run that follows says why */
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		if (id_is_valid(entry->d_name + (entry->d_name[0] == '.'), ID_SANDBOX))
			sweep_one(dirfd(dir), state_dir, entry->d_name);
}
