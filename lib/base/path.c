/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include "base/auto.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static int open_how(int dirfd, const char *path, int flags, mode_t mode, unsigned long resolve)
{
	struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC,
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = resolve | RESOLVE_NO_MAGICLINKS,
	};

	/* EAGAIN: something was renamed while the kernel looked; it asks to be asked again. */
	for (int tries = 0; tries < 64; tries++) {
		int fd = sys_openat2(dirfd, path, &how);
		if (fd >= 0)
			return fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

int path_open_in_root(int dirfd, const char *path, int flags, mode_t mode)
{
	return open_how(dirfd, path, flags, mode, RESOLVE_IN_ROOT);
}

int path_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	return open_how(dirfd, path, flags, mode,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

int path_make_dirs(int dirfd, const char *path, mode_t mode)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, len + 1);

	auto_close int at = open_how(dirfd, ".", O_PATH | O_DIRECTORY, 0, RESOLVE_BENEATH);
	if (at < 0)
		return at;
	char *save = NULL;
	for (char *name = strtok_r(part, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
			return -errno;
		int next = open_how(at, name, O_PATH | O_DIRECTORY, 0,
				    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
		if (next < 0)
			return next;
		drop_fd(&at);
		at = next;
	}
	return 0;
}

/* A directory that its owner made unreadable is still his to remove. */
static int open_closed(int dirfd, const char *name)
{
	const unsigned long resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
	int fd = open_how(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, resolve);

	if (fd != -EACCES)
		return fd;
	if (fchmodat(dirfd, name, 0700, 0) < 0)
		return -errno;
	return open_how(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, resolve);
}

/* Empties the directory and closes it.  One level of open descriptors per level of the tree would
 * let a tree of 10,000 levels stop us, so a deep directory is first moved up beside its parent. */
static int empty_dir(int dirfd, int top, unsigned depth)
{
	DIR *dir = fdopendir(dirfd);
	int first = 0;

	if (!dir) {
		int r = -errno;
		close(dirfd);
		return r;
	}
	/* A directory that its owner made unreadable or unwritable is still ours to remove. */
	(void)fchmod(dirfd, 0700);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (unlinkat(dirfd, name, 0) == 0)
			continue;
		if (errno != EISDIR && errno != EPERM && errno != ENOTEMPTY) {
			first = first ? first : -errno;
			continue;
		}
		if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
			continue;
		if (depth >= 32) {
			static unsigned long moved;
			char up[64];
			snprintf(up, sizeof(up), ".cay-deep-%lu", moved++);
			if (renameat(dirfd, name, top, up) == 0)
				continue;
		}
		int child = open_closed(dirfd, name);
		int r = child < 0 ? child : empty_dir(child, top, depth + 1);
		if (r == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
			r = -errno;
		first = first ? first : r;
	}
	closedir(dir);
	return first;
}

int path_remove_tree(int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;

	/* Deep directories were moved up into the top one: go on until nothing is left. */
	for (int round = 0; round < 100000; round++) {
		if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return -errno;
		int top = open_how(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
				   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
		if (top < 0)
			return top;
		auto_close int again = fcntl(top, F_DUPFD_CLOEXEC, 3);
		int r = empty_dir(top, again, 0);
		if (r < 0)
			return r;
	}
	return -ELOOP;
}

bool path_is_name(const char *name)
{
	size_t len = strnlen(name, NAME_MAX + 1);

	return len > 0 && len <= NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}
