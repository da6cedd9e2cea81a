/* SPDX-License-Identifier: Apache-2.0
 *
 * list.h - what is in a directory and below, a few entries at a time.
 *
 * Never through a symlink, at most AGENT_LIST_DEPTH_MAX levels, and every name that was met counts
 * towards the maximum, so that a tree which grows while we walk cannot hold us. */
#pragma once

#include "wire/agent.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct channel;
struct request;
struct sandbox;

#define LISTINGS_MAX 4 /* at the same time */
#define LIST_DIRENTS 2048

struct list_level {
	int fd;
	size_t path_len; /* of this directory, relative to the listed one */
	size_t at, have; /* in dirents */
	uint8_t dirents[LIST_DIRENTS];
};

struct listing {
	bool used;
	bool incomplete; /* something could not be shown */
	uint32_t depth, max;
	uint64_t sent;
	uint32_t met;
	unsigned n_levels;
	char path[AGENT_PATH_MAX + 1];
	struct list_level levels[AGENT_LIST_DEPTH_MAX];
};

int list_start(struct sandbox *sandbox, struct channel *channel, const struct request *request,
	       struct err *err);
void list_pump(struct sandbox *sandbox, struct channel *channel);

/* Gives it up; the channel is free. */
void list_finish(struct channel *channel);
