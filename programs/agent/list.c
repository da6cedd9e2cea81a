/* SPDX-License-Identifier: Apache-2.0 */
#include "list.h"

#include "files.h"
#include "sandbox.h"

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES_PER_TURN 64
/* struct linux_dirent64: u64 inode, u64 offset, u16 length, u8 type, name */
#define DIRENT_LENGTH 16
#define DIRENT_NAME 19

static uint32_t type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return 'f';
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'l';
	default:
		return 'o';
	}
}

/* The code sets any time it likes; what does not fit is shown as 0. */
static uint64_t nanoseconds(const struct timespec *ts)
{
	if (ts->tv_sec < 0 || ts->tv_sec > INT64_MAX / 1000000000 - 1)
		return 0;
	return (uint64_t)ts->tv_sec * 1000000000 + (uint64_t)ts->tv_nsec;
}

static void send_entry(struct sandbox *sandbox, struct channel *channel, const struct stat *st,
		       const char *path)
{
	struct pack pack = out_begin(&sandbox->out);

	pack_u32(&pack, type_of(st->st_mode));
	pack_u64(&pack, (uint64_t)st->st_size);
	pack_u32(&pack, st->st_mode & 07777);
	pack_u64(&pack, nanoseconds(&st->st_mtim));
	pack_text(&pack, path);
	out_end(&sandbox->out, AGENT_ENTRY, channel->id, &pack);
	channel->credit -= (uint32_t)pack.len;
	channel->listing->sent++;
}

static void end(struct sandbox *sandbox, struct channel *channel)
{
	out_done(&sandbox->out, channel->id, channel->listing->sent + channel->listing->incomplete);
	list_finish(channel);
}

static void push(struct listing *listing, int fd, size_t path_len)
{
	struct list_level *level = &listing->levels[listing->n_levels++];

	level->fd = fd;
	level->path_len = path_len;
	level->at = level->have = 0;
}

static void pop(struct listing *listing)
{
	drop_fd(&listing->levels[--listing->n_levels].fd);
}

int list_start(struct sandbox *sandbox, struct channel *channel, const struct request *request,
	       struct err *err)
{
	struct listing *listing = NULL;
	const char *path = request->list.path;

	for (size_t i = 0; i < LISTINGS_MAX && !listing; i++)
		if (!sandbox->listings[i].used)
			listing = &sandbox->listings[i];
	if (!listing)
		return err_make(err, ERR_LIMIT, "%d lists are being made", LISTINGS_MAX);
	/* depth 0 asks for the thing itself, whatever it is; O_PATH does not touch it. */
	int flags = request->list.depth == 0 ? O_PATH : O_RDONLY | O_DIRECTORY | O_NONBLOCK;
	int fd = files_open(path, flags);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return err_make(err, ERR_NOT_FOUND, "there is no '%.255s'", path);
	if (fd < 0)
		return err_errno(err, -fd, "open '%.255s'", path);

	listing->used = true;
	listing->incomplete = false;
	listing->depth = request->list.depth;
	listing->max = request->list.max;
	listing->sent = listing->met = listing->n_levels = 0;
	push(listing, fd, 0);
	channel->kind = CHANNEL_LIST;
	channel->listing = listing;
	return 0;
}

/* The next name in the directory, "." and ".." too; NULL at its end. */
static const char *next_name(struct list_level *level)
{
	uint16_t length;

	if (level->at >= level->have) {
		long n = syscall(SYS_getdents64, level->fd, level->dirents, sizeof(level->dirents));
		if (n <= 0)
			return NULL;
		level->at = 0;
		level->have = (size_t)n;
	}
	const uint8_t *dirent = level->dirents + level->at;
	memcpy(&length, dirent + DIRENT_LENGTH, sizeof(length));
	level->at += length;
	return (const char *)dirent + DIRENT_NAME;
}

/* Puts "dir/name" into listing->path; 0 when that is longer than the wire allows. */
static size_t join(struct listing *listing, size_t dir_len, const char *name)
{
	size_t at = dir_len > 0 ? dir_len + 1 : 0;
	size_t len = strlen(name);

	if (len > AGENT_PATH_MAX - at || at > AGENT_PATH_MAX)
		return 0;
	if (dir_len > 0)
		listing->path[dir_len] = '/';
	memcpy(listing->path + at, name, len + 1);
	return at + len;
}

static void descend(struct listing *listing, int dir, const char *name, size_t path_len)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		listing->incomplete = true;
	else
		push(listing, fd, path_len);
}

/* One step of the walk: a name shown, a directory entered or left. */
static void step(struct sandbox *sandbox, struct channel *channel)
{
	struct listing *listing = channel->listing;
	struct list_level *level = &listing->levels[listing->n_levels - 1];
	const char *name = next_name(level);
	struct stat st;

	if (!name) {
		pop(listing);
		return;
	}
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	size_t path_len = join(listing, level->path_len, name);
	if (listing->met++ >= listing->max) {
		listing->incomplete = true;
		while (listing->n_levels > 0)
			pop(listing);
		return;
	}
	if (path_len == 0 || fstatat(level->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		listing->incomplete = true;
		return;
	}
	send_entry(sandbox, channel, &st, listing->path);
	if (S_ISDIR(st.st_mode) && listing->n_levels < listing->depth)
		descend(listing, level->fd, name, path_len);
}

static void show_itself(struct sandbox *sandbox, struct channel *channel)
{
	struct stat st;

	if (fstat(channel->listing->levels[0].fd, &st) < 0)
		channel->listing->incomplete = true;
	else
		send_entry(sandbox, channel, &st, "");
	pop(channel->listing);
}

void list_pump(struct sandbox *sandbox, struct channel *channel)
{
	struct listing *listing = channel->listing;

	for (int i = 0; i < ENTRIES_PER_TURN && listing->n_levels > 0; i++) {
		if (channel->credit < AGENT_ENTRY_MAX ||
		    out_data_room(&sandbox->out) < AGENT_ENTRY_MAX)
			return;
		if (listing->depth == 0)
			show_itself(sandbox, channel);
		else
			step(sandbox, channel);
	}
	if (listing->n_levels > 0)
		sandbox->again = true;
	else if (out_is_open(&sandbox->out))
		end(sandbox, channel);
}

void list_finish(struct channel *channel)
{
	while (channel->listing->n_levels > 0)
		pop(channel->listing);
	channel->listing->used = false;
	channel_free(channel);
}
