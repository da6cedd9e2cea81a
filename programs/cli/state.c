/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include "base/auto.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
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

/* Parents are made as mkdir -p would; only the last one is private. */
static int make_dirs(const char *path)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	memcpy(part, path, len + 1);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
			return -errno;
		*slash = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int state_dir(char ret_path[static PATH_MAX], struct err *err)
{
	char path[PATH_MAX];
	struct stat st;

	int r = state_path(path, err);
	if (r < 0)
		return r;
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		r = make_dirs(path);
		if (r < 0)
			return err_errno(err, -r, "make the state directory '%s'", path);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open the state directory '%s'", path);
	if (st.st_uid != geteuid())
		return err_make(err, ERR_CONFLICT,
				"the state directory '%s' belongs to uid %u, not to uid %u; set "
				"CAY_STATE to a directory of your own",
				path, st.st_uid, geteuid());
	if ((st.st_mode & 077) && fchmod(fd, 0700) < 0)
		return err_errno(err, errno, "make the state directory '%s' private", path);
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return err_errno(err, errno, "write to the state directory '%s'", path);
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
