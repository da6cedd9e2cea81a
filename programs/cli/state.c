/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include "base/auto.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_path(char *ret_path, struct err *err, const char *first, const char *rest)
{
	if (first[0] != '/')
		return err_make(err, ERR_INVALID,
				"the state directory '%s' must be an absolute path", first);
	if (snprintf(ret_path, PATH_MAX, "%s%s", first, rest) >= PATH_MAX)
		return err_make(err, ERR_INVALID, "the path of the state directory is too long");
	return 0;
}

/* $HOME may be missing or lie in a service; the password file knows. */
static const char *home_dir(void)
{
	const char *home = getenv("HOME");

	if (home && home[0] == '/')
		return home;
	const struct passwd *me = getpwuid(getuid());
	return me ? me->pw_dir : NULL;
}

int state_path(char ret_path[static PATH_MAX], struct err *err)
{
	const char *given = getenv("CAY_STATE");
	const char *xdg = getenv("XDG_STATE_HOME");

	if (given && *given)
		return set_path(ret_path, err, given, "");
	if (geteuid() == 0)
		return set_path(ret_path, err, "/var/lib/cay", "");
	if (xdg && xdg[0] == '/')
		return set_path(ret_path, err, xdg, "/cay");
	const char *home = home_dir();
	if (!home)
		return err_make(err, ERR_NOT_FOUND,
				"no home directory; set CAY_STATE to a directory that cay may use");
	return set_path(ret_path, err, home, "/.local/state/cay");
}

/* The kernel said no in the folder above path. */
static int refuse_making(struct err *err, const char *path, int errnum)
{
	int parent = (int)(strrchr(path, '/') - path);

	return err_make(err, ERR_SYSTEM,
			"the state directory '%.200s' cannot be made in '%.*s' (%s); set CAY_STATE "
			"to a directory of your own",
			path,
			parent > 120 ? 120
			: parent > 0 ? parent
				     : 1,
			path, strerrordesc_np(errnum));
}

#define STATE "the state directory"
#define ABOVE "the state directory's parent"

/* The error of a path that somebody else could read from, write to or swap. */
static int refuse(struct err *err, const char *what, const char *path, const char *why)
{
	return err_make(err, ERR_CONFLICT,
			"%s '%.300s' %s; set CAY_STATE to a directory of your own", what, path,
			why);
}

/* Nobody but root and we may swap what lies in this directory, now or after we looked. */
static int check_parent(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return err_errno(err, errno,
				 "look at '%s' above the state directory; set CAY_STATE to a "
				 "directory of your own",
				 path);
	if (!S_ISDIR(st.st_mode))
		return refuse(err, ABOVE, path, "is not a directory");
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return refuse(err, ABOVE, path, "belongs to somebody else");
	bool group = (st.st_mode & S_IWGRP) && st.st_gid != 0 && st.st_gid != getegid();
	if ((group || (st.st_mode & S_IWOTH)) && !(st.st_mode & S_ISVTX))
		return refuse(err, ABOVE, path, "is writable by others");
	return 0;
}

/* path is absolute and without links: "/", then each directory down to it. */
static int check_parents(const char *path, struct err *err)
{
	char part[PATH_MAX];

	int r = check_parent("/", err);
	for (size_t i = 1; r >= 0 && path[i - 1]; i++) {
		if (i == 1 || (path[i] != '/' && path[i] != '\0'))
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		r = check_parent(part, err);
	}
	return r;
}

/* Cuts the last name off path, which has no slash at its end; *ret_name points behind it. */
static void cut_name(char *path, const char **ret_name)
{
	char *slash = strrchr(path, '/');

	*slash = '\0';
	*ret_name = slash + 1;
}

/* The directory `path`, made when it is missing, below parents that nobody can swap; its path
 * without links is written to ret_real.  The depth of the recursion is that of the path. */
static int make_parent(const char *path, char ret_real[static PATH_MAX], struct err *err)
{
	char above[PATH_MAX];
	const char *name;

	if (realpath(*path ? path : "/", ret_real))
		return check_parents(ret_real, err);
	if (errno != ENOENT)
		return err_errno(err, errno,
				 "open '%s' above the state directory; set CAY_STATE to a "
				 "directory of your own",
				 path);
	memcpy(above, path, strlen(path) + 1);
	cut_name(above, &name);
	int r = make_parent(above, ret_real, err);
	if (r < 0)
		return r;
	size_t len = strlen(ret_real);
	if (snprintf(ret_real + len, PATH_MAX - len, "%s%s", len > 1 ? "/" : "", name) >=
	    (int)(PATH_MAX - len))
		return err_make(err, ERR_INVALID, "the path of the state directory is too long");
	if (mkdir(ret_real, 0755) < 0 && errno != EEXIST)
		return refuse_making(err, ret_real, errno);
	return check_parent(ret_real, err);
}

/* Only a directory that we made is changed; one that was there is taken as it is, or refused. */
static int check_own(int fd, const char *path, bool made, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "look at the state directory '%s'", path);
	if (st.st_uid != geteuid())
		return err_make(err, ERR_CONFLICT,
				"the state directory '%s' belongs to uid %u, not to uid %u; set "
				"CAY_STATE to a directory of your own",
				path, st.st_uid, geteuid());
	if (made && fchmod(fd, 0700) < 0)
		return err_errno(err, errno, "make the state directory '%s' private", path);
	if (!made && (st.st_mode & (S_IWGRP | S_IWOTH)))
		return refuse(err, STATE, path, "is writable by others");
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return err_errno(err, errno, "write to the state directory '%s'", path);
	return 0;
}

int state_dir(char ret_path[static PATH_MAX], struct err *err)
{
	char above[PATH_MAX], path[PATH_MAX];
	const char *name;

	int r = state_path(above, err);
	if (r < 0)
		return r;
	/* With a slash at the end a link would be followed. */
	for (size_t len = strlen(above); len > 0 && above[len - 1] == '/'; len--)
		above[len - 1] = '\0';
	if (!*above)
		return refuse(err, STATE, "/", "cannot be used");
	cut_name(above, &name);
	r = make_parent(above, path, err);
	if (r < 0)
		return r;
	size_t len = strlen(path);
	if (snprintf(path + len, sizeof(path) - len, "%s%s", len > 1 ? "/" : "", name) >=
	    (int)(sizeof(path) - len))
		return err_make(err, ERR_INVALID, "the path of the state directory is too long");
	bool made = mkdir(path, 0700) == 0;
	if (!made && errno != EEXIST)
		return refuse_making(err, path, errno);
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return refuse(err, STATE, path, "is a link or not a directory");
	if (fd < 0)
		return err_errno(err, errno, "open the state directory '%s'", path);
	r = check_own(fd, path, made, err);
	if (r < 0)
		return r;
	memcpy(ret_path, path, sizeof(path));
	return 0;
}

int state_find_program(char ret_path[static PATH_MAX], const char *name, const char *override,
		       struct err *err)
{
	/* Beside us in a build tree's top, in its own folder there, and where install puts it. */
	static const char *const places[] = { "", "/programs/warden", "/../warden",
					      "/../libexec/cay" };
	const char *given = getenv(override);
	char self[PATH_MAX];

	if (given && *given) {
		if (snprintf(ret_path, PATH_MAX, "%s", given) >= PATH_MAX)
			return err_make(err, ERR_INVALID, "%s is too long", override);
		return 0;
	}
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return err_errno(err, errno, "read '/proc/self/exe'");
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char path[PATH_MAX];
		int len = snprintf(path, sizeof(path), "%s%s/%s", self, places[i], name);
		if (len < PATH_MAX && access(path, X_OK) == 0) {
			memcpy(ret_path, path, (size_t)len + 1);
			return 0;
		}
	}
	return err_make(err, ERR_NOT_FOUND,
			"the program '%s' is neither beside '%s/cay' nor in libexec", name, self);
}
