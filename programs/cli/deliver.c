/* SPDX-License-Identifier: Apache-2.0 */
#include "deliver.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "receipt/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 65536
#define HOLE_MIN 4096

/* Opens the folder that the file shall be in, made if need be. */
static int open_parent(int dirfd, const char *path, const char **ret_name, struct err *err)
{
	char folder[PATH_MAX] = ".";
	const char *slash = strrchr(path, '/');

	if (path[0] == '/')
		return err_make(err, ERR_INVALID, "the name is absolute");
	if (slash) {
		size_t len = (size_t)(slash - path);
		if (len >= sizeof(folder))
			return err_make(err, ERR_INVALID, "the name is too long");
		memcpy(folder, path, len);
		folder[len] = '\0';
		int r = path_make_dirs(dirfd, folder, 0777);
		if (r < 0)
			return err_errno(err, -r, "make its folder");
	}
	int fd = path_open_beneath(dirfd, folder, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return err_errno(err, -fd, "open its folder");
	*ret_name = slash ? slash + 1 : path;
	return fd;
}

/* A file without a name where the file system can do that: nothing stays when we are killed. */
static int make_file(struct delivery *d, struct err *err)
{
	char id[ID_SIZE];

	d->fd = openat(d->parent, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (d->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return err_errno(err, errno, "make the file");
	int r = id_make(id, ID_EXECUTION, err);
	if (r < 0)
		return r;
	snprintf(d->temp, sizeof(d->temp), ".cay-%s", id);
	d->fd = openat(d->parent, d->temp, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC,
		       0600);
	if (d->fd < 0) {
		d->temp[0] = '\0';
		return err_errno(err, errno, "make the file");
	}
	return 0;
}

int deliver_begin(struct delivery *d, int dirfd, const char *path, bool force, struct err *err)
{
	struct stat st;

	*d = (struct delivery){ .parent = -1, .fd = -1, .force = force };
	int r = open_parent(dirfd, path, &d->name, err);
	if (r < 0)
		return r;
	d->parent = r;
	if (fstatat(d->parent, d->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !force) {
		if (!S_ISREG(st.st_mode))
			return err_make(err, ERR_CONFLICT, "something else has that name");
		return 0;
	}
	return make_file(d, err);
}

/* Zeros that are worth a hole; less would only break the file into pieces. */
static bool is_hole(const uint8_t *data, size_t len)
{
	return len >= HOLE_MIN && data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

int deliver_write(struct delivery *d, const void *data, size_t len, struct err *err)
{
	const uint8_t *at = data;
	size_t left = d->fd < 0 ? 0 : len, written = 0;

	while (left > 0) {
		size_t n = BLOCK - d->size % BLOCK;
		n = n < left ? n : left;
		int r = 0;
		if (!is_hole(at, n)) {
			r = fd_write_all(d->fd, at, n);
			written += n;
		} else if (lseek(d->fd, (off_t)n, SEEK_CUR) < 0) {
			r = -errno;
		}
		if (r < 0)
			return err_errno(err, -r, "write the file");
		d->size += n;
		at += n;
		left -= n;
	}
	return (int)written;
}

static int compare(struct delivery *d, const char *sha256, struct err *err)
{
	char there[DIGEST_HEX_SIZE];
	uint64_t bytes;
	auto_close int fd = path_open_beneath(d->parent, d->name, O_RDONLY | O_NONBLOCK, 0);

	if (fd >= 0 && digest_of_fd(fd, there, &bytes) == 0 && strcmp(there, sha256) == 0)
		return 0;
	return err_make(err, ERR_CONFLICT,
			"a file of that name exists and is different; --force replaces it");
}

/* Gives the unnamed file a name that does not exist yet. */
static int link_name(struct delivery *d, const char *name)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", d->fd);
	return linkat(AT_FDCWD, self, d->parent, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int name_temp(struct delivery *d, struct err *err)
{
	char id[ID_SIZE];

	if (d->temp[0])
		return 0;
	int r = id_make(id, ID_EXECUTION, err);
	if (r < 0)
		return r;
	snprintf(d->temp, sizeof(d->temp), ".cay-%s", id);
	r = link_name(d, d->temp);
	if (r < 0) {
		d->temp[0] = '\0';
		return err_errno(err, -r, "name the file");
	}
	return 0;
}

static int replace(struct delivery *d, struct err *err)
{
	int r = name_temp(d, err);

	if (r < 0)
		return r;
	if (renameat(d->parent, d->temp, d->parent, d->name) < 0)
		return err_errno(err, errno, "replace the file");
	d->temp[0] = '\0';
	return 0;
}

int deliver_commit(struct delivery *d, uint32_t mode, const char *sha256, struct err *err)
{
	if (d->fd < 0)
		return compare(d, sha256, err);
	if (ftruncate(d->fd, (off_t)d->size) < 0)
		return err_errno(err, errno, "write the file");
	mode_t mask = umask(022);
	(void)umask(mask);
	if (fchmod(d->fd, (mode & 0777 & ~mask) | 0600) < 0)
		return err_errno(err, errno, "set the file's mode");
	if (d->force)
		return replace(d, err);
	int r = 0;
	if (!d->temp[0])
		r = link_name(d, d->name);
	else if (renameat2(d->parent, d->temp, d->parent, d->name, RENAME_NOREPLACE) < 0)
		r = -errno;
	else
		d->temp[0] = '\0';
	return r < 0 ? err_errno(err, -r, "name the file") : 0;
}

void deliver_finish(struct delivery *d)
{
	if (d->temp[0] && d->parent >= 0)
		(void)unlinkat(d->parent, d->temp, 0);
	drop_fd(&d->fd);
	drop_fd(&d->parent);
}
