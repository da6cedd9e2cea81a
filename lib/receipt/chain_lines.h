/* SPDX-License-Identifier: Apache-2.0
 *
 * chain_lines.h - reads a file of receipts line by line, with memory for one line. */
#pragma once

#include "receipt/receipt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct chain_lines {
	int fd; /* borrowed */
	size_t start, end;
	bool skipping;       /* inside a line that is too long */
	uint64_t torn_bytes; /* at the end: what came after the last newline */
	char buffer[RECEIPT_LINE_MAX];
};

/* From the descriptor's offset on. */
void chain_lines_init(struct chain_lines *lines, int fd);

/* 1 and the next line without its newline, borrowed until the next call; 0 at the end.  A line
 * that is too long for a receipt has the length RECEIPT_LINE_MAX and is cut. */
int chain_lines_next(struct chain_lines *lines, const char **ret_line, size_t *ret_len,
		     struct err *err);

/* Moves a regular file's offset to the beginning of its last n lines, or of all when there are
 * fewer. */
int chain_lines_seek_last(int fd, uint64_t n, struct err *err);
