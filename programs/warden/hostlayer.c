/* SPDX-License-Identifier: Apache-2.0 */
#include "hostlayer.h"

#include "template.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

/* Package data without secrets.  Only what others may read is copied. */
static const char *const wanted[] = {
	"etc/alternatives",    "etc/ssl/certs",       "etc/ssl/openssl.cnf", "etc/fonts",
	"etc/ld.so.cache",     "etc/ld.so.conf",      "etc/ld.so.conf.d",    "etc/matplotlibrc",
	"etc/mime.types",      "etc/services",        "etc/protocols",       "etc/magic",
	"etc/java-11-openjdk", "etc/java-17-openjdk", "etc/java-21-openjdk", "etc/ImageMagick-6",
	"etc/terminfo",        "etc/debian_version",
};

static const char *const top_links[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

#define FORMAT 5 /* of the copy: raised when the lists above change */
#define FILE_MAX_BYTES (16u << 20)
#define DEPTH_MAX 8

static uint64_t mix(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *at = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ at[i]) * 1099511628211ull;
	return hash;
}

/* Changes whenever one of the sources is replaced or, for a directory, gets or loses a name. */
static uint64_t stamp(int root)
{
	uint64_t hash = 14695981039346656037ull + FORMAT;
	struct utsname uts;
	struct stat st;

	if (uname(&uts) == 0) /* the base tells the kernel's version */
		hash = mix(mix(hash, uts.release, strlen(uts.release)), uts.version,
			   strlen(uts.version));

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		if (fstatat(root, wanted[i], &st, 0) < 0)
			continue;
		struct {
			uint64_t inode, device, size, sec, nsec;
		} seen = { st.st_ino, st.st_dev, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
			   (uint64_t)st.st_mtim.tv_nsec };
		hash = mix(hash, wanted[i], strlen(wanted[i]));
		hash = mix(hash, &seen, sizeof(seen));
	}
	return hash;
}

static int copy_file(int from, const char *name, int to, struct err *err)
{
	auto_close int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX_BYTES ||
	    !(st.st_mode & 0004))
		return 0; /* not for everybody: not for a sandbox */
	auto_close int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (out < 0)
		return err_errno(err, errno, "copy '%s' of the host", name);
	char buffer[65536];
	for (ssize_t n; (n = read(in, buffer, sizeof(buffer))) != 0;) {
		int r = n < 0 ? -errno : fd_write_all(out, buffer, (size_t)n);
		if (r < 0)
			return err_errno(err, -r, "copy '%s' of the host", name);
	}
	return 0;
}

static int copy_any(int from, const char *name, int to, unsigned depth, struct err *err);

static int copy_dir(int from, const char *name, int to, unsigned depth, struct err *err)
{
	int fd = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	if (!dir || depth == DEPTH_MAX)
		return 0;
	if (mkdirat(to, name, 0755) < 0 && errno != EEXIST)
		return err_errno(err, errno, "copy '%s' of the host", name);
	auto_close int target = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		int r = copy_any(dirfd(dir), entry->d_name, target, depth + 1, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int copy_link(int from, const char *name, int to, struct err *err)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return 0;
	target[n] = '\0';
	if (symlinkat(target, to, name) < 0 && errno != EEXIST)
		return err_errno(err, errno, "copy the link '%s' of the host", name);
	return 0;
}

static int copy_any(int from, const char *name, int to, unsigned depth, struct err *err)
{
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	/* What lies in a directory that others cannot enter is not theirs, whatever its own mode.
	 */
	if (S_ISDIR(st.st_mode))
		return (st.st_mode & 0005) == 0005 ? copy_dir(from, name, to, depth, err) : 0;
	if (S_ISLNK(st.st_mode))
		return copy_link(from, name, to, err);
	return copy_file(from, name, to, err);
}

/* One of `wanted`, with its parents. */
static int copy_path(int root, const char *path, int to, struct err *err)
{
	char parent[64];
	const char *slash = strrchr(path, '/');

	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	auto_close int from = openat(root, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (from < 0)
		return 0;
	int r = path_make_dirs(to, parent, 0755);
	if (r < 0)
		return err_errno(err, -r, "make '%s' in the host layer", parent);
	auto_close int target = openat(to, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return copy_any(from, slash + 1, target, 0, err);
}

static int copy_host(int root, int to, struct err *err)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(top_links); i++) {
		if (fstatat(root, top_links[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		int r = 0;
		if (S_ISLNK(st.st_mode))
			r = copy_link(root, top_links[i], to, err);
		else if (S_ISDIR(st.st_mode) && mkdirat(to, top_links[i], 0755) < 0)
			r = err_errno(err, errno, "make '%s' in the host layer", top_links[i]);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		int r = copy_path(root, wanted[i], to, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int build(int root, int to, struct err *err)
{
	auto_close int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (proc < 0 || mkdirat(to, "root", 0755) < 0 || mkdirat(to, "base", 0755) < 0)
		return err_errno(err, errno, "make the host layer");
	auto_close int copy = openat(to, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int base = openat(to, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = copy_host(root, copy, err);
	return r < 0 ? r : template_build_base(base, proc, err);
}

static int build_at(int root, int state, const char *path, struct err *err)
{
	int r = path_make_dirs(state, path, 0755);
	auto_close int to = r < 0 ? -1 : openat(state, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (to < 0)
		return err_errno(err, r < 0 ? -r : errno, "make '%s'", path);
	return build(root, to, err);
}

int hostlayer_ensure(const char *state_dir, char *ret_path, size_t size, struct err *err)
{
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int state = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[64], temp[80];

	if (root < 0 || state < 0)
		return err_errno(err, errno, "open '%s'", state_dir);
	snprintf(name, sizeof(name), "layers/host/%016llx", (unsigned long long)stamp(root));
	if ((size_t)snprintf(ret_path, size, "%s/%s", state_dir, name) >= size)
		return err_make(err, ERR_INVALID, "the path of the state directory is too long");
	if (faccessat(state, name, F_OK, 0) == 0)
		return 0;

	/* Built aside and renamed, so that nobody ever sees half of it. */
	snprintf(temp, sizeof(temp), "%s.%d", name, getpid());
	mode_t mask = umask(0022); /* the sandbox's user is not the owner, and reads it */
	int r = build_at(root, state, temp, err);
	umask(mask);
	if (r == 0 && renameat(state, temp, state, name) < 0 && errno != EEXIST &&
	    errno != ENOTEMPTY)
		r = err_errno(err, errno, "put '%s' in place", name);
	(void)path_remove_tree(state, temp); /* gone already, unless somebody else was faster */
	return r;
}
