/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include "base/auto.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
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

static int open_dir(int dirfd, const char *name)
{
	return open_how(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

/* A directory that its owner made unreadable or unwritable is still ours to remove. */
static int open_closed(int dirfd, const char *name)
{
	int fd = open_dir(dirfd, name);

	if (fd == -EACCES) {
		if (fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		fd = open_dir(dirfd, name);
	}
	if (fd >= 0)
		(void)fchmod(fd, 0700);
	return fd;
}

/* One level of open descriptors per level of the tree would let a tree of 10,000 levels stop us,
 * so a deep directory is first moved up into the top one. */
struct removal {
	int top;
	bool moved; /* something was, so the top one must be looked at again */
};

#define DEPTH_MAX 32
#define ROUNDS_MAX 100000 /* somebody who makes directories as fast as we remove them */

static bool move_up(struct removal *removal, int dirfd, const char *name)
{
	char up[32];
	uint64_t number;

	/* A name that nobody could have put in our way. */
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return false;
	snprintf(up, sizeof(up), ".cay-%016llx", (unsigned long long)number);
	/* To be moved it must be writable: its ".." changes. */
	if (renameat(dirfd, name, removal->top, up) < 0 &&
	    (errno != EACCES || fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW) < 0 ||
	     renameat(dirfd, name, removal->top, up) < 0))
		return false;
	removal->moved = true;
	return true;
}

static int empty_dir(struct removal *removal, int dirfd, unsigned depth);

static int remove_name(struct removal *removal, int dirfd, const char *name, unsigned depth)
{
	if (unlinkat(dirfd, name, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
		return 0;
	if (depth >= DEPTH_MAX && move_up(removal, dirfd, name))
		return 0;
	int child = open_closed(dirfd, name);
	int r = child < 0 ? child : empty_dir(removal, child, depth + 1);
	if (r == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

/* Empties the directory and closes it. */
static int empty_dir(struct removal *removal, int dirfd, unsigned depth)
{
	DIR *dir = fdopendir(dirfd);
	int first = 0;

	if (!dir) {
		int r = -errno;
		close(dirfd);
		return r;
	}
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		int r = remove_name(removal, dirfd, entry->d_name, depth);
		first = first ? first : r;
	}
	closedir(dir);
	return first;
}

int path_remove_tree(int dirfd, const char *name)
{
	struct removal removal = { .moved = true };
	int r = 0;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
		return 0;
	for (int round = 0; removal.moved && round < ROUNDS_MAX; round++) {
		int fd = open_closed(dirfd, name);
		if (fd < 0)
			return fd;
		/* Without it deep directories are not moved up, and each keeps a descriptor. */
		auto_close int top = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		removal = (struct removal){ .top = top };
		r = empty_dir(&removal, fd, 0);
	}
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return r < 0 ? r : -errno;
}

bool path_is_name(const char *name)
{
	size_t len = strnlen(name, NAME_MAX + 1);

	return len > 0 && len <= NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}
