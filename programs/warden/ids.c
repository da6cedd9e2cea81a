/* SPDX-License-Identifier: Apache-2.0 */
#include "ids.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ROOT_FIRST 1879048192u
#define ROOT_SLOT 65536u
#define ROOT_SLOTS 36000u
#define USER_SLOT 1024u    /* ids 0 to 1023 of a sandbox: root, user and the system's own */
#define LEASE_WAIT_MS 5000 /* for another run to end, when every slot is taken */

/* The first range of this user in /etc/subuid or /etc/subgid. */
static bool find_range(const char *file, const char *name, uid_t uid, uint32_t *ret_first,
		       uint32_t *ret_count)
{
	auto_fclose FILE *f = fopen(file, "re");
	char line[256], who[128], number[16];
	unsigned long first, count;

	snprintf(number, sizeof(number), "%u", uid);
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%127[^:]:%lu:%lu", who, &first, &count) == 3 &&
		    ((name && strcmp(who, name) == 0) || strcmp(who, number) == 0) &&
		    count >= USER_SLOT && first < UINT32_MAX && count < UINT32_MAX - first) {
			*ret_first = (uint32_t)first;
			*ret_count = (uint32_t)count;
			return true;
		}
	return false;
}

static bool has_helpers(void)
{
	return access("/usr/bin/newuidmap", X_OK) == 0 && access("/usr/bin/newgidmap", X_OK) == 0;
}

/* Root of the machine, not of some user namespace in it: every uid is ours to map. */
static bool is_real_root(void)
{
	char text[128];
	unsigned first, outside, count;

	return geteuid() == 0 &&
	       fd_read_text_at(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) > 0 &&
	       sscanf(text, "%u %u %u", &first, &outside, &count) == 3 && first == 0 &&
	       outside == 0 && count == UINT32_MAX;
}

static bool is_own_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* Where the leases of this user are.  No variable decides it: two runs that looked in two places
 * would get the same uids. */
static void lease_dir(char *ret_path, size_t size)
{
	const struct passwd *pw = getpwuid(geteuid());

	if (geteuid() == 0) {
		snprintf(ret_path, size, "/run/cay");
		return;
	}
	snprintf(ret_path, size, "/run/user/%u", geteuid());
	if (is_own_dir(ret_path))
		snprintf(ret_path, size, "/run/user/%u/cay", geteuid());
	else if (pw && is_own_dir(pw->pw_dir))
		snprintf(ret_path, size, "%.200s/.cay", pw->pw_dir);
	else
		snprintf(ret_path, size, "/tmp/cay-%u", geteuid());
}

/* The file whose bytes stand for slots.  Each user has one. */
static int open_leases(struct err *err)
{
	char path[256];

	lease_dir(path, sizeof(path));
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", path);

	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (dir < 0 || fstat(dir, &st) < 0)
		return err_errno(err, errno, "open '%s'", path);
	if (st.st_uid != geteuid() || (st.st_mode & 0022))
		return err_make(err, ERR_INVALID, "'%s' belongs to somebody else; remove it", path);
	int fd = openat(dir, "slots", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(err, errno, "open '%s/slots'", path);
	return fd;
}

/* Locks n neighbouring bytes; returns the first, or -EAGAIN when all are taken. */
static int try_slots(int fd, uint32_t n, uint32_t max, struct err *err)
{
	for (uint32_t first = 0; first + n <= max; first++) {
		struct flock lock = {
			.l_type = F_WRLCK,
			.l_whence = SEEK_SET,
			.l_start = first,
			.l_len = n,
		};
		if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
			return (int)first;
		if (errno != EAGAIN && errno != EACCES)
			return err_errno(err, errno, "lock a slot of uids");
	}
	(void)err_make(err, ERR_LIMIT, "all %u slots of uids are in use; try again later", max);
	return -EAGAIN;
}

static int lock_slots(int fd, uint32_t n, uint32_t max, struct err *err)
{
	int64_t until = clock_mono_ms() + LEASE_WAIT_MS;

	for (;;) {
		int slot = try_slots(fd, n, max, err);
		if (slot != -EAGAIN)
			return slot;
		if (clock_mono_ms() > until)
			return -err->errnum;
		usleep(20000);
	}
}

int ids_lease(struct ids *ids, uint32_t n_slots, struct err *err)
{
	*ids = (struct ids){
		.mode = IDS_SINGLE,
		.own_uid = geteuid(),
		.own_gid = getegid(),
		.slot_size = 1,
		.n_slots = n_slots,
		.lease_fd = -1,
	};
	uint32_t max = 0, uids = 0, gids = 0;
	if (is_real_root()) {
		ids->mode = IDS_ROOT;
		ids->uid_first = ids->gid_first = ROOT_FIRST;
		ids->slot_size = ROOT_SLOT;
		max = ROOT_SLOTS;
	} else {
		const struct passwd *pw = getpwuid(ids->own_uid);
		const char *name = pw ? pw->pw_name : NULL;
		if (!has_helpers() ||
		    !find_range("/etc/subuid", name, ids->own_uid, &ids->uid_first, &uids) ||
		    !find_range("/etc/subgid", name, ids->own_uid, &ids->gid_first, &gids))
			return 0;
		ids->mode = IDS_RANGES;
		ids->slot_size = USER_SLOT;
		max = (uids < gids ? uids : gids) / USER_SLOT;
		if (n_slots > max)
			ids->n_slots = n_slots = max;
	}
	auto_close int fd = open_leases(err);
	if (fd < 0)
		return fd;
	int slot = lock_slots(fd, n_slots, max, err);
	if (slot < 0)
		return slot;
	ids->uid_first += (uint32_t)slot * ids->slot_size;
	ids->gid_first += (uint32_t)slot * ids->slot_size;
	ids->lease_fd = take_fd(&fd);
	return 0;
}

void ids_release(struct ids *ids)
{
	drop_fd(&ids->lease_fd);
}

static int write_proc(int proc_fd, pid_t pid, const char *file, const char *text, struct err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", pid, file);
	int r = fd_write_text_at(proc_fd, path, text);
	if (r < 0)
		return err_errno(err, -r, "write the %s of a user namespace", file);
	return 0;
}

/* As root U's own uid is the last of the range, so that a range is all that a run needs. */
static int map_outer_root(const struct ids *ids, int proc_fd, pid_t pid, struct err *err)
{
	uint32_t n = ids->n_slots * ids->slot_size;
	char text[96];

	snprintf(text, sizeof(text), "0 %u 1\n1 %u %u\n", ids->uid_first + n - 1, ids->uid_first,
		 n - 1);
	int r = write_proc(proc_fd, pid, "uid_map", text, err);
	return r < 0 ? r : write_proc(proc_fd, pid, "gid_map", text, err);
}

static int run_helper(const char *path, pid_t pid, uint32_t own, uint32_t first, uint32_t count,
		      struct err *err)
{
	char pid_text[16], own_text[16], first_text[16], count_text[16];
	char *argv[] = { (char *)path, pid_text,   "0",        own_text, "1",
			 "1",          first_text, count_text, NULL };
	char *envp[] = { NULL };

	snprintf(pid_text, sizeof(pid_text), "%d", pid);
	snprintf(own_text, sizeof(own_text), "%u", own);
	snprintf(first_text, sizeof(first_text), "%u", first);
	snprintf(count_text, sizeof(count_text), "%u", count);
	pid_t child = vfork();
	if (child == 0) {
		execve(path, argv, envp);
		_exit(127);
	}
	if (child < 0)
		return err_errno(err, errno, "start '%s'", path);
	int status = -1;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0)
		return err_make(err, ERR_SETUP, "'%s' refused the range %u+%u", path, first, count);
	return 0;
}

int ids_map_outer(const struct ids *ids, pid_t pid, struct err *err)
{
	auto_close int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	uint32_t n = ids->n_slots * ids->slot_size;
	char text[64];
	int r;

	if (proc_fd < 0)
		return err_errno(err, errno, "open '/proc'");
	switch (ids->mode) {
	case IDS_ROOT:
		return map_outer_root(ids, proc_fd, pid, err);
	case IDS_RANGES:
		r = run_helper("/usr/bin/newuidmap", pid, ids->own_uid, ids->uid_first, n, err);
		if (r < 0)
			return r;
		return run_helper("/usr/bin/newgidmap", pid, ids->own_gid, ids->gid_first, n, err);
	case IDS_SINGLE:
		break;
	}
	r = write_proc(proc_fd, pid, "setgroups", "deny", err);
	snprintf(text, sizeof(text), "0 %u 1\n", ids->own_uid);
	if (r == 0)
		r = write_proc(proc_fd, pid, "uid_map", text, err);
	snprintf(text, sizeof(text), "0 %u 1\n", ids->own_gid);
	return r < 0 ? r : write_proc(proc_fd, pid, "gid_map", text, err);
}

/* Ids that a sandbox has.  As root the last one of all slots is U's own. */
static uint32_t count_of(const struct ids *ids)
{
	return ids->mode == IDS_ROOT ? ids->slot_size - 1 : ids->slot_size;
}

static uint32_t outer_first(const struct ids *ids, uint32_t slot)
{
	return 1 + slot * ids->slot_size;
}

/* In the form in which the kernel shows a map; it reads it too. */
static void map_text(const struct ids *ids, uint32_t slot, bool own_user, char *ret_text,
		     size_t size)
{
	uint32_t first = outer_first(ids, slot), n = count_of(ids);
	size_t len = 0;
	struct {
		uint32_t in, out, count;
	} lines[3] = { { 0, first, n } };
	int n_lines = 1;

	if (ids->mode == IDS_SINGLE) {
		lines[0].in = IDS_INSIDE_UID;
		lines[0].out = 0;
		lines[0].count = 1;
	} else if (own_user && ids->mode == IDS_RANGES) {
		lines[0].count = IDS_INSIDE_UID;
		lines[1].in = IDS_INSIDE_UID;
		lines[1].out = 0;
		lines[1].count = 1;
		lines[2].in = IDS_INSIDE_UID + 1;
		lines[2].out = first + IDS_INSIDE_UID + 1;
		lines[2].count = n - IDS_INSIDE_UID - 1;
		n_lines = 3;
	}
	ret_text[0] = '\0';
	for (int i = 0; i < n_lines && len < size; i++)
		len += (size_t)snprintf(ret_text + len, size - len, "%10u %10u %10u\n", lines[i].in,
					lines[i].out, lines[i].count);
}

int ids_map_sandbox(const struct ids *ids, uint32_t slot, bool own_user, int proc_fd, pid_t pid,
		    struct err *err)
{
	char text[128];
	int r = 0;

	map_text(ids, slot, own_user, text, sizeof(text));
	if (ids->mode == IDS_SINGLE)
		r = write_proc(proc_fd, pid, "setgroups", "deny", err);
	if (r == 0)
		r = write_proc(proc_fd, pid, "uid_map", text, err);
	return r < 0 ? r : write_proc(proc_fd, pid, "gid_map", text, err);
}

void ids_expect_map(const struct ids *ids, uint32_t slot, bool own_user, char *ret_text,
		    size_t size)
{
	map_text(ids, slot, own_user, ret_text, size);
}

static bool is_own(const struct ids *ids, bool own_user)
{
	return ids->mode == IDS_SINGLE || (own_user && ids->mode == IDS_RANGES);
}

uid_t ids_outer_id(const struct ids *ids, uint32_t slot, bool own_user)
{
	return is_own(ids, own_user) ? 0 : outer_first(ids, slot) + IDS_INSIDE_UID;
}

uid_t ids_host_uid(const struct ids *ids, uint32_t slot, bool own_user)
{
	if (is_own(ids, own_user))
		return ids->own_uid;
	return ids->uid_first + slot * ids->slot_size + IDS_INSIDE_UID;
}

gid_t ids_host_gid(const struct ids *ids, uint32_t slot, bool own_user)
{
	if (is_own(ids, own_user))
		return ids->own_gid;
	return ids->gid_first + slot * ids->slot_size + IDS_INSIDE_UID;
}

uid_t ids_first_uid(const struct ids *ids, uint32_t slot)
{
	return ids->mode == IDS_SINGLE ? ids->own_uid : ids->uid_first + slot * ids->slot_size;
}
