/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_storage.c - where cay keeps its state, and how a workspace is kept to its size. */
#include "doctor.h"

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SPACE_WANTED (256ull << 20)

/* "/var/lib/cay" is "var/lib/cay" below the root; "/" is ".". */
static const char *below(const char *path)
{
	while (*path == '/')
		path++;
	return *path ? path : ".";
}

/* The directory itself, or the nearest above it that is there. */
static void find_existing(const struct host *host, char ret_dir[static PATH_MAX])
{
	(void)snprintf(ret_dir, PATH_MAX, "%s", below(host->state_dir));
	while (!host_has(host, ret_dir)) {
		char *slash = strrchr(ret_dir, '/');
		if (!slash) {
			(void)snprintf(ret_dir, PATH_MAX, ".");
			return;
		}
		*slash = '\0';
	}
}

static unsigned long long free_bytes(const struct host *host, const char *dir)
{
	struct statvfs fs;
	auto_close int fd = openat(host->root, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fstatvfs(fd, &fs) < 0)
		return 0;
	return (unsigned long long)fs.f_bavail * fs.f_frsize;
}

static void check_state_dir(const struct host *host, struct finding *f)
{
	char dir[PATH_MAX];
	struct stat st;

	find_existing(host, dir);
	bool exists = strcmp(dir, below(host->state_dir)) == 0;
	unsigned long long space = free_bytes(host, dir);
	finding_found(f, "%s, %llu MiB free%s", host->state_dir, space >> 20,
		      exists ? "" : ", will be made");

	static const char own[] = "CAY_STATE=$HOME/cay-state cay run ...";
	bool is_dir = fstatat(host->root, dir, &st, 0) == 0 && S_ISDIR(st.st_mode);
	if (!is_dir || faccessat(host->root, dir, W_OK | X_OK, AT_EACCESS) < 0)
		finding_set(f, DOCTOR_MISSING, "it cannot be written to, so nothing can be run",
			    own);
	else if (exists && st.st_uid != host->uid)
		finding_set(f, DOCTOR_MISSING, "it belongs to somebody else, so cay refuses it",
			    own);
	else if (space < SPACE_WANTED)
		finding_set(f, DOCTOR_DEGRADED, "a run fails when the disk is full",
			    "CAY_STATE=/somewhere/larger cay run ...");
	else
		finding_set(f, DOCTOR_OK, "keys, receipts and layers are kept here", NULL);
}

static void check_key(const struct host *host, struct finding *f)
{
	char path[PATH_MAX + 32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/keys/receipt.key", below(host->state_dir));
	if (fstatat(host->root, path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		bool unknown = errno != ENOENT && errno != ENOTDIR;
		finding_found(f, unknown ? "cannot be looked at" : "none yet");
		finding_set(f, unknown ? DOCTOR_MISSING : DOCTOR_OK,
			    unknown ? "no receipt could be signed" : "the first run makes it",
			    NULL);
		return;
	}
	finding_found(f, "/%s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != host->uid || st.st_mode & 077 ||
	    st.st_size != 32) {
		finding_set(f, DOCTOR_MISSING,
			    "others may have read or changed it, so cay refuses to sign with it",
			    NULL);
		finding_mend(f, "mv /%s/keys /%s/keys.bad && mv /%s/receipts /%s/receipts.old",
			     below(host->state_dir), below(host->state_dir), below(host->state_dir),
			     below(host->state_dir));
		return;
	}
	finding_set(f, DOCTOR_OK, "receipts are signed with it", NULL);
}

static void set_watched(struct finding *f, const char *mend)
{
	finding_found(f, "a watched directory");
	finding_set(f, DOCTOR_DEGRADED,
		    "a run can write past its disk limit for some milliseconds before it is "
		    "stopped",
		    mend);
}

/* As the warden does: a file system in a file, for which it needs root, loop devices and mke2fs. */
static void check_quota(const struct host *host, struct finding *f)
{
	if (host->uid != 0) {
		set_watched(f, "sudo cay run ...");
	} else if (!host_has(host, "dev/loop-control")) {
		set_watched(f, "sudo modprobe loop");
	} else if (!host_has(host, "sbin/mke2fs") && !host_has(host, "usr/sbin/mke2fs")) {
		set_watched(f, "sudo apt-get install e2fsprogs");
	} else {
		finding_found(f, "loop file");
		finding_set(f, DOCTOR_OK, "each workspace is a file system of its own size", NULL);
	}
}

const struct check doctor_storage_checks[] = {
	{ "state_dir", "state directory", true, check_state_dir },
	{ "receipt_key", "receipt key", true, check_key },
	{ "quota", "workspace quota", false, check_quota },
	{ 0 },
};
