/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/chain.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "receipt/envelope.h"
#include "receipt/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define CHAIN_NAME "chain.jsonl"
#define LOCK_NAME "lock"
#define LOCK_WAIT_MS 30000

/* Enough for most lines, and for a torn line of any length behind a whole one of any length. */
#define TAIL_SHORT (16 * 1024)
#define TAIL_LONG (2 * RECEIPT_LINE_MAX + 1)

/* After a failed sync the kernel has forgotten what it could not write: asking again would be
 * answered with success.  So it is not asked again by this process. */
static bool sync_has_failed;

static int damaged(struct err *err)
{
	return err_make(err, ERR_CONFLICT,
			"the end of '%s' is damaged: see 'cay receipt verify', and move the file "
			"away to begin a new chain",
			CHAIN_NAME);
}

/* Polls, because a writer that was stopped (SIGSTOP) must not stop all others for ever. */
static int take_lock(int dir, struct err *err)
{
	auto_close int fd = openat(dir, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(err, errno, "open '%s'", LOCK_NAME);

	int64_t deadline = clock_mono_ms() + LOCK_WAIT_MS;
	long nap_ns = 200000;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_errno(err, errno, "lock '%s'", LOCK_NAME);
		if (clock_mono_ms() > deadline)
			return err_make(err, ERR_TIMEOUT, "another process holds '%s' for %d s",
					LOCK_NAME, LOCK_WAIT_MS / 1000);
		nanosleep(&(struct timespec){ .tv_nsec = nap_ns }, NULL);
		if (nap_ns < 5000000)
			nap_ns *= 2;
	}
	return take_fd(&fd);
}

/* The last whole line of the window, without its newline; what follows it is torn.  A line with a
 * NUL is torn too: a file system may leave zeros where data did not arrive.  False: the window
 * does not reach far enough back. */
static bool find_last_line(const char *window, size_t len, bool from_start, size_t *ret_start,
			   size_t *ret_end)
{
	for (;;) {
		const char *newline = memrchr(window, '\n', len);
		if (!newline) {
			*ret_start = *ret_end = 0;
			return from_start;
		}
		size_t end = (size_t)(newline - window);
		const char *before = memrchr(window, '\n', end);
		if (!before && !from_start)
			return false;
		size_t start = before ? (size_t)(before - window) + 1 : 0;
		if (!memchr(window + start, '\0', end - start)) {
			*ret_start = start;
			*ret_end = end + 1;
			return true;
		}
		len = start;
	}
}

static int read_last_line(struct chain *chain, const char *line, size_t len, struct err *err)
{
	struct envelope envelope;
	struct payload_place place;
	struct err why;

	if (envelope_parse(line, len, &envelope, &why) < 0 ||
	    (!payload_peek(envelope.payload, envelope.payload_len, &place) &&
	     payload_parse(envelope.payload, envelope.payload_len, &place, NULL, &why) < 0) ||
	    place.seq >= INT64_MAX)
		return damaged(err);
	chain->last_seq = place.seq;
	memcpy(chain->last_sha256, envelope.sha256, DIGEST_HEX_SIZE);
	return 0;
}

/* 1: the window was too short. */
static int read_tail(struct chain *chain, char *window, size_t size, struct err *err)
{
	size_t want = chain->size < (off_t)size ? (size_t)chain->size : size;
	off_t from = chain->size - (off_t)want;
	size_t start, end;

	ssize_t n = pread(chain->fd, window, want, from);
	if (n < 0)
		return err_errno(err, errno, "read '%s'", CHAIN_NAME);
	if ((size_t)n != want)
		return err_errno(err, EIO, "read '%s'", CHAIN_NAME);
	if (!find_last_line(window, want, from == 0, &start, &end))
		return 1;
	/* We never write a longer line, so a longer one was not torn by a power failure. */
	if (want - end >= RECEIPT_LINE_MAX)
		return damaged(err);
	chain->end = from + (off_t)end;
	return end == 0 ? 0 : read_last_line(chain, window + start, end - start - 1, err);
}

static int find_end(struct chain *chain, struct err *err)
{
	char window[TAIL_SHORT];

	int r = read_tail(chain, window, sizeof(window), err);
	if (r != 1)
		return r;
	auto_free char *longer = malloc(TAIL_LONG);
	if (!longer)
		return err_errno(err, ENOMEM, "read '%s'", CHAIN_NAME);
	r = read_tail(chain, longer, TAIL_LONG, err);
	return r == 1 ? damaged(err) : r;
}

static int open_chain(struct chain *chain, struct err *err)
{
	struct stat st;

	chain->fd = openat(chain->dir, CHAIN_NAME,
			   O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (chain->fd < 0 || fstat(chain->fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", CHAIN_NAME);
	if (!S_ISREG(st.st_mode))
		return err_make(err, ERR_CONFLICT, "'%s' is not a file", CHAIN_NAME);
	chain->size = st.st_size;
	return find_end(chain, err);
}

int chain_lock(int dir, struct chain *ret_chain, struct err *err)
{
	struct chain chain = { .dir = dir, .lock = -1, .fd = -1, .last_sha256 = DIGEST_ZERO };

	if (sync_has_failed)
		return err_make(err, ERR_CONFLICT,
				"an earlier receipt could not be made durable; start anew when "
				"the disk is well");
	chain.lock = take_lock(dir, err);
	if (chain.lock < 0)
		return chain.lock;
	int r = open_chain(&chain, err);
	if (r < 0) {
		chain_unlock(&chain);
		return r;
	}
	*ret_chain = chain;
	return 0;
}

/* The name of a new file is durable only with its directory. */
static int make_durable(struct chain *chain)
{
	if (fdatasync(chain->fd) < 0)
		return -errno;
	if (chain->end == 0 && fsync(chain->dir) < 0)
		return -errno;
	return 0;
}

int chain_append(struct chain *chain, const char *line, size_t len, struct err *err)
{
	if (chain->end < chain->size && ftruncate(chain->fd, chain->end) < 0)
		return err_errno(err, errno, "cut the torn end of '%s'", CHAIN_NAME);
	chain->size = chain->end;

	int r = fd_write_all(chain->fd, line, len);
	if (r == 0) {
		r = make_durable(chain);
		sync_has_failed = r < 0;
	}
	if (r < 0) {
		/* If even this fails, what is left is a torn line, or one nobody was told of. */
		if (ftruncate(chain->fd, chain->end) < 0)
			sync_has_failed = true;
		return err_errno(err, -r, "write '%s'", CHAIN_NAME);
	}
	chain->size = chain->end += (off_t)len;
	return 0;
}

void chain_unlock(struct chain *chain)
{
	drop_fd(&chain->fd);
	/* Not by close() alone: a child that was forked in between would keep the lock. */
	if (chain->lock >= 0)
		(void)flock(chain->lock, LOCK_UN);
	drop_fd(&chain->lock);
}
