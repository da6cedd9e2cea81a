/* SPDX-License-Identifier: Apache-2.0 */
#include "sources.h"

#include "base/auto.h"
#include "base/err.h"
#include "wire/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef CGROUP2_SUPER_MAGIC
#define CGROUP2_SUPER_MAGIC 0x63677270
#endif

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Does the directory lie below, or is it, the one that `above` describes?  By walking up, so that
 * no link and no bind mount hides it. */
static bool lies_in(const char *path, const struct stat *above)
{
	auto_close int at = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat here, last = { 0 };

	for (int level = 0; level < 4096 && at >= 0 && fstat(at, &here) == 0; level++) {
		if (is_same(&here, above))
			return true;
		if (level > 0 && is_same(&here, &last))
			return false;
		last = here;
		int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		drop_fd(&at);
		at = up;
	}
	return false;
}

static bool is_system(const struct stat *st)
{
	static const char *const paths[] = { "/",    "/etc", "/usr",  "/var", "/proc", "/sys",
					     "/dev", "/run", "/boot", "/tmp", "/home" };
	struct stat other;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (stat(paths[i], &other) == 0 && is_same(st, &other))
			return true;
	return false;
}

static bool is_kernels(const char *path)
{
	static const long types[] = { PROC_SUPER_MAGIC,    SYSFS_MAGIC,   CGROUP_SUPER_MAGIC,
				      CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
				      SECURITYFS_MAGIC,    BPF_FS_MAGIC,  DEVPTS_SUPER_MAGIC,
				      PSTOREFS_MAGIC };
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if ((long)fs.f_type == types[i])
			return true;
	return false;
}

/* The directory of a file. */
static void parent_of(const char *path, char *ret_parent, size_t size)
{
	const char *slash = strrchr(path, '/');

	snprintf(ret_parent, size, "%.*s", slash > path ? (int)(slash - path) : 1, path);
}

static int check_one(const struct warden_bind *bind, const char *source, const char *state_dir,
		     const struct stat *state, struct err *err)
{
	bool is_workspace = bind->kind == BIND_WORKSPACE_RO || bind->kind == BIND_WORKSPACE_RW;
	char dir[1024];
	struct stat st;

	if (stat(source, &st) < 0)
		return err_errno(err, errno, "open '%s'", source);
	if (is_workspace && (is_system(&st) || is_kernels(source)))
		return err_make(err, ERR_INVALID,
				"'%s' cannot be a workspace; give a directory of your own", source);
	parent_of(source, dir, sizeof(dir));
	if (lies_in(bind->kind == BIND_INPUT ? dir : source, state) ||
	    (bind->kind != BIND_INPUT && lies_in(state_dir, &st)))
		return err_make(err, ERR_INVALID,
				"'%s' and the state directory '%s' must not hold one another",
				source, state_dir);
	return 0;
}

int sources_check(const struct warden_create *create, const char *state_dir, struct err *err)
{
	struct stat state;

	if (stat(state_dir, &state) < 0)
		return err_errno(err, errno, "open the state directory '%s'", state_dir);
	for (uint32_t i = 0; i < create->n_binds; i++) {
		const struct warden_bind *bind = &create->binds[i];
		if (bind->kind == BIND_TREE)
			continue; /* runtimes and their layers, found by cay itself */
		int r = check_one(bind, create->strings + bind->source, state_dir, &state, err);
		if (r < 0)
			return r;
	}
	return 0;
}
