/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/build.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "runtime/prefix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENV_MAX 4096

static const struct {
	const char *set, *modules;
} sets[] = {
	{ LAYERS_DATA,
	  "numpy, pandas, matplotlib.pyplot, sklearn, pyarrow, requests, PIL, dateutil, "
	  "scipy, openpyxl, reportlab" },
};

const char *build_modules(const char *set)
{
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		if (strcmp(sets[i].set, set) == 0)
			return sets[i].modules;
	return NULL;
}

static void tell(const struct build *build, const char *stage, const char *what)
{
	if (build->on_stage)
		build->on_stage(build->arg, stage, what);
}

/* Settings that would send the packages elsewhere, or load code of the user's; where the index is
 * and how it is reached stays the user's business. */
static bool is_unwanted(const char *variable)
{
	static const char *const names[] = {
		"PIP_USER",     "PIP_TARGET",      "PIP_PREFIX",
		"PIP_ROOT",     "PIP_REQUIREMENT", "PIP_REQUIRE_VIRTUALENV",
		"PIP_DRY_RUN",  "PIP_CONSTRAINT",  "PIP_REPORT",
		"PIP_QUIET",    "PIP_LOG",         "MPLBACKEND",
		"MPLCONFIGDIR",
	};
	size_t len = strcspn(variable, "=");

	if (strncmp(variable, "PYTHON", 6) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && strncmp(variable, names[i], len) == 0)
			return true;
	return false;
}

static void fill_environment(char *ret_env[static ENV_MAX])
{
	size_t n = 0;

	/* Configuration files may say the opposite; the environment wins over them. */
	ret_env[n++] = "PIP_USER=0";
	ret_env[n++] = "PIP_REQUIRE_VIRTUALENV=0";
	ret_env[n++] = "MPLBACKEND=Agg";
	ret_env[n++] = "MPLCONFIGDIR=/dev/null"; /* cannot be made, so nothing is kept */
	if (!getenv("PIP_RETRIES"))
		ret_env[n++] = "PIP_RETRIES=2";
	for (char **variable = environ; *variable && n < ENV_MAX - 1; variable++)
		if (!is_unwanted(*variable))
			ret_env[n++] = *variable;
	ret_env[n] = NULL;
}

/* The lock goes along: when we are killed, the next build waits until pip is gone, too. */
static int start(const char *const *argv, int out, int lock, pid_t *ret_pid)
{
	char *env[ENV_MAX];
	posix_spawn_file_actions_t actions;

	fill_environment(env);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, out, 2);
	if (lock >= 0)
		posix_spawn_file_actions_adddup2(&actions, lock, 3);
	posix_spawn_file_actions_addclosefrom_np(&actions, lock >= 0 ? 4 : 3);
	int r = posix_spawn(ret_pid, argv[0], &actions, NULL, (char *const *)argv, env);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* Keeps the end of what was said. */
static void remember(struct build *build, const char *line)
{
	size_t have = strlen(build->tail), len = strlen(line);

	if (len > sizeof(build->tail) / 4)
		len = sizeof(build->tail) / 4;
	while (have + len + 2 > sizeof(build->tail)) {
		char *newline = strchr(build->tail, '\n');
		if (!newline)
			return;
		memmove(build->tail, newline + 1, strlen(newline + 1) + 1);
		have = strlen(build->tail);
	}
	snprintf(build->tail + have, sizeof(build->tail) - have, "%.*s\n", (int)len, line);
}

/* "Collecting numpy==2.5.4 (from -r ...)" */
static void tell_progress(struct build *build, const char *line)
{
	char name[128];

	if (strncmp(line, "Collecting ", 11) == 0) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(line + 11, " "), line + 11);
		char *equals = strstr(name, "==");
		if (equals) {
			*equals = ' ';
			memmove(equals + 1, equals + 2, strlen(equals + 2) + 1);
		}
		tell(build, "getting", name);
	} else if (strncmp(line, "Installing collected", 20) == 0) {
		tell(build, "installing", "");
	}
}

/* Why there was no answer says more than that nothing was found in it. */
static void keep_reason(struct build *build, const char *line)
{
	static const char broken[] = "connection broken by ", error[] = "ERROR: ";
	const char *why = strstr(line, broken);

	const char *detail = why ? strstr(why, ">: ") : NULL;
	if (detail)
		/* 'NewConnectionError('<... object at 0x1>: REASON')': /simple/numpy/ */
		snprintf(build->reason, sizeof(build->reason), "%.*s",
			 (int)strcspn(detail + 3, "'\""), detail + 3);
	else if (why)
		snprintf(build->reason, sizeof(build->reason), "%.*s",
			 (int)sizeof(build->reason) - 1, why + strlen(broken));
	else if (!build->reason[0] && strncmp(line, error, strlen(error)) == 0)
		snprintf(build->reason, sizeof(build->reason), "%.*s",
			 (int)sizeof(build->reason) - 1, line + strlen(error));
	else if (strstr(line, "No module named pip"))
		snprintf(build->reason, sizeof(build->reason), "it has no pip");
}

static void on_line(struct build *build, const char *line)
{
	if (strstr(line, "No module named pip") || strstr(line, "Could not find a version") ||
	    strstr(line, "No matching distribution") || strstr(line, "Max retries exceeded") ||
	    strstr(line, "connection broken by"))
		build->index_failed = true;
	keep_reason(build, line);
	tell_progress(build, line);
	if (line[0] && strncmp(line, "WARNING: Running pip as", 23) != 0)
		remember(build, line);
}

static int run(struct build *build, const char *const *argv, struct err *err)
{
	char line[1024];
	int pipe_fds[2], status;
	pid_t pid;

	build->tail[0] = '\0';
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	auto_close int out = pipe_fds[1];
	auto_fclose FILE *in = fdopen(pipe_fds[0], "r");
	if (!in) {
		close(pipe_fds[0]);
		return err_errno(err, ENOMEM, "read from '%s'", argv[0]);
	}
	int r = start(argv, out, build->held ? build->lock_fd : -1, &pid);
	if (r < 0)
		return err_errno(err, -r, "start '%s'", argv[0]);
	drop_fd(&out);
	while (fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		on_line(build, line);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status))
		return err_make(err, ERR_UNSUPPORTED, "'%s' was ended by signal %d", argv[0],
				WTERMSIG(status));
	if (WEXITSTATUS(status) != 0)
		return err_make(err, ERR_UNSUPPORTED, "'%s' ended with %d", argv[0],
				WEXITSTATUS(status));
	return 0;
}

static int install(struct build *build, const char *site, struct err *err)
{
	const char *const argv[] = { build->runtime->exe,
				     "-I",
				     "-m",
				     "pip",
				     "install",
				     "--require-hashes",
				     "--only-binary",
				     ":all:",
				     "--no-deps",
				     "--ignore-installed",
				     "--no-compile",
				     "--no-input",
				     "--disable-pip-version-check",
				     "--progress-bar",
				     "off",
				     "--target",
				     site,
				     "-r",
				     build->lock,
				     NULL };

	build->index_failed = false;
	build->reason[0] = '\0';
	int r = run(build, argv, err);
	return r < 0 ? err_while(err, "get the libraries with pip") : 0;
}

/* Bytecode that never asks for the source's time: the layer does not change, and a tree that was
 * copied would otherwise be compiled anew by every run.  The names in it are the sandbox's. */
static void compile(struct build *build, const char *site)
{
	const struct runtime *runtime = build->runtime;
	char inside[PATH_MAX];

	bool in_usr = prefix_is_in_usr(runtime->prefix);
	snprintf(inside, sizeof(inside), "%s%s/%s", in_usr ? "/usr" : RUNTIME_ROOT "/",
		 in_usr ? "" : runtime->name, runtime->site);
	const char *const argv[] = { runtime->exe,
				     "-I",
				     "-m",
				     "compileall",
				     "-qq",
				     "-j",
				     "0",
				     "--invalidation-mode",
				     "unchecked-hash",
				     "-s",
				     site,
				     "-p",
				     inside,
				     site,
				     NULL };

	struct err ignored;

	tell(build, "compiling", "");
	/* Some packages carry files that are not meant for this version: not a failure. */
	(void)run(build, argv, &ignored);
}

int build_try_imports(struct build *build, const char *modules, const char *site, struct err *err)
{
	char code[PATH_MAX + 512];

	/* Python reads the directory's name from the arguments: no quoting.  What the host's .pth
	 * files have loaded is not what a sandbox would load. */
	snprintf(code, sizeof(code),
		 "import os, sys\n"
		 "sys.path[:0] = sys.argv[1:]\n"
		 "sys.dont_write_bytecode = True\n"
		 "for site in sys.argv[1:]:\n"
		 "    for name in os.listdir(site): sys.modules.pop(name, None)\n"
		 "import %s\n",
		 modules);
	const char *const argv[] = {
		build->runtime->exe, "-I", "-W", "ignore", "-c", code, site, NULL
	};
	int r = run(build, argv, err);
	return r < 0 ? err_while(err, "import the libraries") : 0;
}

/* The scripts' first lines name an interpreter that is somewhere else in the sandbox. */
static void drop_scripts(const char *site)
{
	auto_close int fd = open(site, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)path_remove_tree(fd, "bin"); /* there may be none */
}

static void put_file(int dir, const char *name, const char *text)
{
	auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	/* One that is there already is right; one that cannot be made shows in the imports. */
	if (fd >= 0)
		(void)fd_write_all(fd, text, strlen(text));
}

/* A directory without __init__.py is a package only where no other directory on the path has one:
 * then Debian's, which is behind ours, would be taken and mixed with ours (mpl_toolkits).  And
 * Debian loads its own by a .pth file when Python starts; ours comes before it. */
static void mark_package(int site, const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
				      "0123456789";
	char path[NAME_MAX + 16], theirs[PATH_MAX], line[NAME_MAX + 16];
	struct stat st;

	snprintf(path, sizeof(path), "%s/__init__.py", name);
	snprintf(theirs, sizeof(theirs), "/usr/lib/python3/dist-packages/%s/__init__.py", name);
	if (strspn(name, letters) != strlen(name) ||
	    fstatat(site, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
	    faccessat(site, path, F_OK, 0) == 0 || access(theirs, F_OK) < 0)
		return;
	put_file(site, path, "");
	snprintf(path, sizeof(path), "cay-%s.pth", name);
	snprintf(line, sizeof(line), "import %s\n", name);
	put_file(site, path, line);
}

static void mark_packages(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			mark_package(dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
}

static int try_set(struct build *build, const char *site, struct err *err)
{
	const char *modules = build_modules(build->set);
	char all[512];

	snprintf(all, sizeof(all), "%s%s", modules,
		 strstr(modules, "matplotlib") ? ", mpl_toolkits.mplot3d" : "");
	return build_try_imports(build, all, site, err);
}

/* After a failure: no empty directories, while the lock is ours. */
static void remove_empty(const struct build *build)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/layers/%s", build->state_dir, build->runtime->name) <
		    (int)sizeof(path) &&
	    rmdir(path) == 0) {
		*strrchr(path, '/') = '\0';
		(void)rmdir(path); /* others may have libraries */
	}
}

static int fill(struct build *build, int dir, const char *name, struct err *err)
{
	char relative[256], site[PATH_MAX];

	snprintf(relative, sizeof(relative), "%s/%s", name, build->runtime->site);
	if (snprintf(site, sizeof(site), "%s/layers/%s/%s", build->state_dir, build->runtime->name,
		     relative) >= (int)sizeof(site))
		return err_make(err, ERR_INVALID, "the path of the state directory is too long");
	int r = path_make_dirs(dir, relative, 0755);
	if (r < 0)
		return err_errno(err, -r, "make '%s'", site);
	r = install(build, site, err);
	if (r < 0)
		return r;
	drop_scripts(site);
	if (prefix_is_in_usr(build->runtime->prefix))
		mark_packages(site);
	compile(build, site);
	tell(build, "trying", "");
	return try_set(build, site, err);
}

static int build_under_lock(struct build *build, int dir, const char *link, struct err *err)
{
	char name[LAYERS_DIGEST_SIZE + 16];
	struct stat st;

	if (fstatat(dir, build->digest, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) {
		int r = layers_publish(dir, build->digest, link, err);
		return r < 0 ? r : 1;
	}
	layers_sweep(dir);
	snprintf(name, sizeof(name), ".build-%s", build->digest);
	int r = fill(build, dir, name, err);
	if (r == 0 && renameat(dir, name, dir, build->digest) < 0)
		r = err_errno(err, errno, "put the layer in place");
	if (r < 0) {
		(void)path_remove_tree(dir, name); /* what stays is swept by the next build */
		return r;
	}
	return layers_publish(dir, build->digest, link, err);
}

static int lock(struct build *build, int dir, struct err *err)
{
	if (flock(dir, LOCK_EX | LOCK_NB) == 0)
		return 0;
	tell(build, "waiting", "for another build of the same");
	if (flock(dir, LOCK_EX) < 0)
		return err_errno(err, errno, "lock the layers of %s", build->runtime->name);
	return 0;
}

/* A build that failed while we waited took the directory away. */
static int open_locked(struct build *build, struct err *err)
{
	for (;;) {
		struct stat st;
		auto_close int dir = layers_open_dir(build->state_dir, build->runtime->name, err);
		int r = dir < 0 ? dir : lock(build, dir, err);
		if (r < 0)
			return r;
		if (fstat(dir, &st) < 0)
			return err_errno(err, errno, "look at the layers of %s",
					 build->runtime->name);
		if (st.st_nlink > 0)
			return take_fd(&dir);
	}
}

int build_layer(struct build *build, struct err *err)
{
	const struct runtime *runtime = build->runtime;
	char link[RUNTIME_NAME_SIZE];

	if (!runtime->site[0] || !build_modules(build->set) ||
	    layers_link_name(runtime, build->set, link) < 0)
		return err_make(err, ERR_INVALID, "%s has no libraries '%s'", runtime->name,
				build->set);
	auto_close int dir = open_locked(build, err);
	if (dir < 0)
		return dir;
	build->lock_fd = dir;
	build->held = true;
	/* The sandbox's user is not us. */
	mode_t mask = umask(022);
	int r = build_under_lock(build, dir, link, err);
	umask(mask);
	if (r < 0)
		remove_empty(build);
	build->held = false;
	return r;
}
