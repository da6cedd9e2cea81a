/* SPDX-License-Identifier: Apache-2.0
 *
 * chain.h - the file of receipts: append only, one line each, one writer at a time.
 *
 * Between chain_lock() and chain_unlock() no other process appends.  A line that was cut short by
 * a power failure or a kill was never promised to anybody; the next append removes it. */
#pragma once

#include "receipt/digest.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct chain {
	int dir;  /* borrowed */
	int lock; /* owned */
	int fd;   /* owned */
	off_t size;
	off_t end;         /* after the last whole line; what follows is torn */
	uint64_t last_seq; /* 0: empty */
	char last_sha256[DIGEST_HEX_SIZE];
};

/* dir is the directory of the chain.  Waits at most half a minute for other writers. */
int chain_lock(int dir, struct chain *ret_chain, struct err *err);

/* Writes one line, which ends with its newline, and returns when it is on disk.  On failure the
 * chain is as it was. */
int chain_append(struct chain *chain, const char *line, size_t len, struct err *err);

void chain_unlock(struct chain *chain);
