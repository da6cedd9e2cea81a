/* SPDX-License-Identifier: Apache-2.0
 *
 * output.h - one stream of a program: stdout or stderr, as it is produced.
 *
 * Of a stream that is longer than its cap the first half of the cap and the last half are kept,
 * and what was dropped between is counted.  The digest is of all of it.  Bytes are bytes: no text,
 * no lines.  Memory is bounded by the cap. */
#pragma once

#include "receipt/digest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct output {
	uint64_t total; /* bytes produced */
	struct digest digest;

	uint8_t *head; /* owned; grows up to head_max */
	size_t head_len, head_size, head_max;
	size_t shown; /* of the head, bytes already written by output_show() */

	uint8_t *ring; /* owned; made when the head is full */
	size_t ring_size, ring_at, ring_len;
};

void output_init(struct output *output, uint64_t cap);
void output_finish(struct output *output);

/* Takes what the program wrote.  -ENOMEM: bytes were lost, and count as dropped. */
int output_add(struct output *output, const void *data, size_t len);

/* Head bytes that nobody has seen yet. */
size_t output_waiting(const struct output *output);

/* Writes some of them to fd without blocking longer than one small write; call it when fd can
 * take bytes.  Returns the number, or -errno. */
int output_show(struct output *output, int fd);

/* Bytes lost between head and tail. */
uint64_t output_dropped(const struct output *output);

/* The tail: at most two pieces, in order. */
void output_tail(const struct output *output, const uint8_t *ret_pieces[2], size_t ret_lens[2]);
