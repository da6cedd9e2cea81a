/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/prefix.h"

#include "base/auto.h"
#include "base/err.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What a prefix has when it is somebody's home, or when secrets were put beside the runtime. */
static const char *const secrets[] = {
	".ssh",     ".gnupg",   ".aws",     ".config",   ".netrc", ".bashrc",
	".profile", "pip.conf", ".condarc", "etc/npmrc", ".npmrc", "share/keyrings",
};

/* Directories that hold the things of many. */
static const char *const common[] = { "/",     "/bin",  "/etc",       "/home",   "/lib", "/mnt",
				      "/opt",  "/root", "/run",       "/srv",    "/tmp", "/var",
				      "/snap", "/nix",  "/nix/store", "/var/lib" };

bool path_is_in(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	while (len > 1 && dir[len - 1] == '/')
		len--;
	if (len == 1)
		return path[0] == '/';
	return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

bool prefix_is_in_usr(const char *prefix)
{
	return path_is_in(prefix, "/usr");
}

/* One of those, or a home directory: /home/NAME, this user's, or what is called .local in one. */
static bool is_shared_place(const char *prefix)
{
	const char *home = getenv("HOME");
	const char *last = strrchr(prefix, '/');

	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		if (strcmp(prefix, common[i]) == 0)
			return true;
	if (home && home[0] == '/' && path_is_in(home, prefix))
		return true;
	if (last && strcmp(last, "/.local") == 0)
		return true;
	return strncmp(prefix, "/home/", 6) == 0 && !strchr(prefix + 6, '/');
}

static int check_secrets(const char *prefix, struct err *err)
{
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		if (snprintf(path, sizeof(path), "%s/%s", prefix, secrets[i]) >= (int)sizeof(path))
			return err_make(err, ERR_UNSUPPORTED, "its path is too long");
		if (lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR))
			return err_make(err, ERR_UNSUPPORTED,
					"'%.150s' beside it would be readable in the sandbox",
					path);
	}
	return 0;
}

/* As root a sandbox has uids of its own, so the files must be open to others.  An ordinary user's
 * sandbox may be the user. */
static int check_readable(const char *prefix, const char *exe, struct err *err)
{
	struct stat dir, file;

	if (stat(prefix, &dir) < 0 || stat(exe, &file) < 0)
		return err_errno(err, errno, "look at '%.150s'", exe);
	if (!S_ISDIR(dir.st_mode))
		return err_make(err, ERR_UNSUPPORTED, "its prefix is not a directory");
	if (geteuid() == 0 && ((dir.st_mode & 05) != 05 || (file.st_mode & 05) != 05))
		return err_make(err, ERR_UNSUPPORTED,
				"it is closed to other users, and so to the sandbox's "
				"(chmod -R o+rX '%.120s')",
				prefix);
	return 0;
}

int prefix_check(const char *prefix, const char *exe, const char *state_dir, struct err *err)
{
	if (!path_is_in(exe, prefix))
		return err_make(err, ERR_UNSUPPORTED, "it is not in its prefix '%.150s'", prefix);
	if (prefix_is_in_usr(prefix))
		return 0;
	if (is_shared_place(prefix) || (state_dir && path_is_in(state_dir, prefix)))
		return err_make(
			err, ERR_UNSUPPORTED,
			"it has no directory of its own: '%.120s' holds other things, which "
			"the sandbox would see",
			prefix);
	int r = check_readable(prefix, exe, err);
	if (r < 0)
		return r;
	return check_secrets(prefix, err);
}

static int check_owner(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_errno(err, errno, "look at '%.150s'", path);
	if (st.st_uid != 0)
		return err_make(err, ERR_UNSUPPORTED,
				"'%.100s' belongs to uid %u, and root starts nothing that another "
				"user can change",
				path, st.st_uid);
	if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
		return err_make(err, ERR_UNSUPPORTED,
				"everybody may write to '%.100s', and root starts nothing that "
				"another user can change",
				path);
	return 0;
}

int prefix_check_startable(const char *exe, struct err *err)
{
	char path[PATH_MAX];

	if (access(exe, R_OK | X_OK) < 0)
		return err_make(err, ERR_UNSUPPORTED,
				"it is not readable and executable for uid %u", geteuid());
	if (geteuid() != 0)
		return 0;
	/* The file, the directory it is in and the prefix above that. */
	snprintf(path, sizeof(path), "%s", exe);
	for (int i = 0; i < 3 && path[0]; i++) {
		int r = check_owner(path, err);
		if (r < 0)
			return r;
		*strrchr(path, '/') = '\0';
	}
	return 0;
}
