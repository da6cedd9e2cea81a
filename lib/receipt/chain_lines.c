/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/chain_lines.h"

#include "base/err.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void chain_lines_init(struct chain_lines *lines, int fd)
{
	lines->fd = fd;
	lines->start = lines->end = 0;
	lines->skipping = false;
	lines->torn_bytes = 0;
}

/* Adds what the file has to the buffer.  1, 0 at the end of the file. */
static int fill(struct chain_lines *lines, struct err *err)
{
	ssize_t n;

	memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
	lines->end -= lines->start;
	lines->start = 0;
	do
		n = read(lines->fd, lines->buffer + lines->end, sizeof(lines->buffer) - lines->end);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_errno(err, errno, "read the receipts");
	lines->end += (size_t)n;
	return n > 0;
}

/* The next piece: up to a newline, or a whole buffer without one. */
static int next_piece(struct chain_lines *lines, const char **ret_piece, size_t *ret_len,
		      bool *ret_ended, struct err *err)
{
	for (;;) {
		char *from = lines->buffer + lines->start;
		size_t have = lines->end - lines->start;
		char *newline = memchr(from, '\n', have);

		if (newline || have == sizeof(lines->buffer)) {
			size_t len = newline ? (size_t)(newline - from) : have;
			lines->start += newline ? len + 1 : len;
			*ret_piece = from;
			*ret_len = len;
			*ret_ended = newline;
			return 1;
		}
		int r = fill(lines, err);
		if (r < 0)
			return r;
		if (r == 0) {
			lines->torn_bytes = have;
			return 0;
		}
	}
}

int chain_lines_next(struct chain_lines *lines, const char **ret_line, size_t *ret_len,
		     struct err *err)
{
	bool was_inside, ended;

	do {
		int r = next_piece(lines, ret_line, ret_len, &ended, err);
		if (r <= 0)
			return r;
		was_inside = lines->skipping;
		lines->skipping = !ended;
	} while (was_inside);
	return 1;
}

int chain_lines_seek_last(int fd, uint64_t n, struct err *err)
{
	char block[16 * 1024];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "read the receipts");
	/* The newline that ends the last line counts too. */
	uint64_t newlines = 0;
	off_t at = st.st_size;
	off_t found = 0;
	while (at > 0 && found == 0) {
		size_t want = at < (off_t)sizeof(block) ? (size_t)at : sizeof(block);
		at -= (off_t)want;
		ssize_t got = pread(fd, block, want, at);
		if (got < 0)
			return err_errno(err, errno, "read the receipts");
		for (ssize_t i = got - 1; i >= 0 && found == 0; i--)
			if (block[i] == '\n' && newlines++ == n)
				found = at + i + 1;
	}
	if (lseek(fd, found, SEEK_SET) < 0)
		return err_errno(err, errno, "read the receipts");
	return 0;
}
