/* SPDX-License-Identifier: Apache-2.0
 *
 * out.h - frames on their way to the client.
 *
 * One fixed buffer.  A frame is built in place and never dropped, so whoever builds one asks for
 * room first: control frames while OUT_RESERVE is free, data frames only in what is above it.
 * When the client does not read, room runs out, pipes are left alone and the code waits. */
#pragma once

#include "base/err.h"
#include "wire/frame.h"

#include <stdbool.h>

#define OUT_SIZE 262144
#define OUT_RESERVE 8192 /* one control frame fits in it, whatever it is */
#define OUT_DATA_MAX 65536

struct out {
	size_t start, end;
	uint8_t buffer[OUT_SIZE];
};

/* There is room for a control frame. */
bool out_is_open(const struct out *out);

/* How many bytes a data frame may carry now, at most OUT_DATA_MAX; 0 while that would be but a
 * crumb. */
size_t out_data_room(const struct out *out);

/* A place for a payload; fill it and end it, or leave it. */
struct pack out_begin(struct out *out);
void out_end(struct out *out, uint16_t type, uint32_t channel, const struct pack *pack);

void out_failed(struct out *out, uint32_t channel, const struct err *err);
void out_done(struct out *out, uint32_t channel, uint64_t value);

/* Writes what the stream takes.  0, or -errno when the client is gone. */
int out_flush(struct out *out, int fd);
