/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

int files_open(const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = sys_openat2(AT_FDCWD, path, &how);

	return fd < 0 ? -errno : fd;
}

/* O_NONBLOCK: a FIFO must not hold us, and a device is closed again before anything is read. */
static int open_regular(const char *path, struct stat *ret_stat, struct err *err)
{
	auto_close int fd = files_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	if (fd == -ENOENT || fd == -ENOTDIR)
		return err_make(err, ERR_NOT_FOUND, "there is no '%.255s'", path);
	if (fd < 0)
		return err_errno(err, -fd, "open '%.255s'", path);
	if (fstat(fd, ret_stat) < 0)
		return err_errno(err, errno, "look at '%.255s'", path);
	if (!S_ISREG(ret_stat->st_mode))
		return err_make(err, ERR_INVALID, "'%.255s' is not a regular file", path);
	return take_fd(&fd);
}

int files_read_start(struct sandbox *sandbox, struct channel *channel,
		     const struct request *request, struct err *err)
{
	struct stat st;
	int fd = open_regular(request->read.path, &st, err);

	if (fd < 0)
		return fd;
	/* No more than it had when it was opened: the code may make it longer for ever. */
	uint64_t size = (uint64_t)st.st_size, offset = request->read.offset;
	uint64_t left = offset < size ? size - offset : 0;
	if (request->read.length > 0 && request->read.length < left)
		left = request->read.length;

	channel->kind = CHANNEL_READ;
	channel->transfer =
		(struct transfer){ .fd = fd, .dir_fd = -1, .offset = offset, .left = left };

	struct pack pack = out_begin(&sandbox->out);
	pack_u64(&pack, size);
	pack_u32(&pack, st.st_mode & 07777);
	out_end(&sandbox->out, AGENT_FILE, channel->id, &pack);
	return 0;
}

static void read_done(struct sandbox *sandbox, struct channel *channel)
{
	out_done(&sandbox->out, channel->id, channel->transfer.moved);
	files_finish(channel);
}

void files_read_pump(struct sandbox *sandbox, struct channel *channel)
{
	struct transfer *transfer = &channel->transfer;
	size_t limit = out_data_room(&sandbox->out);

	if (!out_is_open(&sandbox->out))
		return;
	if (transfer->left == 0) {
		read_done(sandbox, channel);
		return;
	}
	if (limit > channel->credit)
		limit = channel->credit;
	if (limit > transfer->left)
		limit = transfer->left;
	if (limit == 0)
		return;

	struct pack pack = out_begin(&sandbox->out);
	ssize_t n = pread(transfer->fd, pack.data, limit, (off_t)transfer->offset);
	sandbox->again = true;
	if (n < 0 && errno == EINTR)
		return;
	if (n < 0) {
		struct err err;
		err_errno(&err, errno, "read the file");
		out_failed(&sandbox->out, channel->id, &err);
		files_finish(channel);
		return;
	}
	if (n == 0) { /* it became shorter */
		read_done(sandbox, channel);
		return;
	}
	pack.len = (size_t)n;
	out_end(&sandbox->out, AGENT_DATA, channel->id, &pack);
	channel->credit -= (uint32_t)n;
	transfer->offset += (size_t)n;
	transfer->moved += (size_t)n;
	transfer->left -= (size_t)n;
}

/* Splits path into its directory, opened, and its last name. */
static int open_parent(const char *path, uint32_t flags, struct transfer *transfer, struct err *err)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char dir[AGENT_PATH_MAX + 2];

	if (!path_is_name(name))
		return err_make(err, ERR_INVALID, "'%.255s' does not name a file", path);
	snprintf(transfer->name, sizeof(transfer->name), "%s", name);
	/* "/x" and "x" are both in the root. */
	snprintf(dir, sizeof(dir), "/%.*s", (int)(name - path), path);

	int r = flags & WRITE_PARENTS ? path_make_dirs(AT_FDCWD, dir, 0755) : 0;
	if (r < 0)
		return err_errno(err, -r, "make the directory of '%.255s'", path);
	transfer->dir_fd = files_open(dir, O_PATH | O_DIRECTORY);
	if (transfer->dir_fd == -ENOENT)
		return err_make(err, ERR_NOT_FOUND, "there is no directory for '%.255s'", path);
	if (transfer->dir_fd < 0)
		return err_errno(err, -transfer->dir_fd, "open the directory of '%.255s'", path);
	return 0;
}

static int create_temporary(struct transfer *transfer)
{
	for (int tries = 0; tries < 16; tries++) {
		uint64_t random;
		if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return -EIO;
		snprintf(transfer->temporary, sizeof(transfer->temporary), ".cay-%016llx",
			 (unsigned long long)random);
		transfer->fd = openat(
			transfer->dir_fd, transfer->temporary,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
		if (transfer->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	int r = -errno;
	transfer->temporary[0] = '\0';
	return r;
}

int files_write_start(struct channel *channel, const struct request *request, struct err *err)
{
	struct transfer *transfer = &channel->transfer;
	const char *path = request->write.path;
	struct stat st;

	channel->kind = CHANNEL_WRITE;
	*transfer = (struct transfer){
		.fd = -1, .dir_fd = -1, .mode = request->write.mode, .flags = request->write.flags
	};
	int r = open_parent(path, request->write.flags, transfer, err);
	if (r == 0 && (transfer->flags & WRITE_EXCLUSIVE) &&
	    fstatat(transfer->dir_fd, transfer->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = err_make(err, ERR_CONFLICT, "'%.255s' exists", path);
	if (r == 0) {
		r = create_temporary(transfer);
		if (r < 0)
			err_errno(err, -r, "create '%.255s'", path);
	}
	if (r < 0)
		files_finish(channel);
	return r;
}

int files_write_data(struct channel *channel, const uint8_t *data, size_t len, struct err *err)
{
	struct transfer *transfer = &channel->transfer;

	if (len > channel->window) {
		err_make(err, ERR_PROTOCOL, "%zu bytes where %u were allowed", len,
			 channel->window);
		files_finish(channel);
		return -err->errnum;
	}
	channel->window -= (uint32_t)len;
	channel->owed += (uint32_t)len;
	int r = fd_write_all(transfer->fd, data, len);
	if (r < 0) {
		err_errno(err, -r, "write '%s'", transfer->name);
		files_finish(channel);
		return r;
	}
	transfer->moved += len;
	return 0;
}

/* Not renameat2() of musl, which has none. */
static int take_name(struct transfer *transfer)
{
	unsigned flags = transfer->flags & WRITE_EXCLUSIVE ? RENAME_NOREPLACE : 0;

	if (fchmod(transfer->fd, transfer->mode) < 0)
		return -errno;
	if (syscall(SYS_renameat2, transfer->dir_fd, transfer->temporary, transfer->dir_fd,
		    transfer->name, flags) < 0)
		return -errno;
	transfer->temporary[0] = '\0';
	return 0;
}

int files_write_done(struct sandbox *sandbox, struct channel *channel, uint64_t said,
		     struct err *err)
{
	struct transfer *transfer = &channel->transfer;
	int r = 0;

	if (said != transfer->moved)
		r = err_make(err, ERR_PROTOCOL, "%llu bytes came, %llu were sent",
			     (unsigned long long)transfer->moved, (unsigned long long)said);
	if (r == 0) {
		r = take_name(transfer);
		if (r == -EEXIST)
			err_make(err, ERR_CONFLICT, "'%s' exists", transfer->name);
		else if (r < 0)
			err_errno(err, -r, "finish '%s'", transfer->name);
	}
	if (r == 0)
		out_done(&sandbox->out, channel->id, transfer->moved);
	files_finish(channel);
	return r;
}

void files_finish(struct channel *channel)
{
	struct transfer *transfer = &channel->transfer;

	if (transfer->temporary[0])
		(void)unlinkat(transfer->dir_fd, transfer->temporary, 0); /* it may be gone */
	drop_fd(&transfer->fd);
	drop_fd(&transfer->dir_fd);
	channel_free(channel);
}
