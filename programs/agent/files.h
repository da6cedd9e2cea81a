/* SPDX-License-Identifier: Apache-2.0
 *
 * files.h - files in and out of the sandbox: regular ones only, and never through a symlink.
 *
 * The code may change the tree while we look; so a name is resolved once, by the kernel, and what
 * was opened is checked by its descriptor.  Relative paths count from the root. */
#pragma once

#include "sandbox.h"

/* Opens path with no symlink anywhere in it.  -errno. */
int files_open(const char *path, int flags);

int files_read_start(struct sandbox *sandbox, struct channel *channel,
		     const struct request *request, struct err *err);
void files_read_pump(struct sandbox *sandbox, struct channel *channel);

/* The bytes go to a file of another name beside it, which takes the name at the end. */
int files_write_start(struct channel *channel, const struct request *request, struct err *err);
/* These end the transfer themselves when they fail; the caller says so. */
int files_write_data(struct channel *channel, const uint8_t *data, size_t len, struct err *err);
int files_write_done(struct sandbox *sandbox, struct channel *channel, uint64_t said,
		     struct err *err);

/* Gives up a transfer and what it left behind; the channel is free. */
void files_finish(struct channel *channel);
