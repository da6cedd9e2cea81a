/* SPDX-License-Identifier: Apache-2.0
 *
 * deliver.h - puts one file into a folder: whole or not at all, never through a symlink, never
 * over an existing file unless told to.
 *
 *     deliver_begin(&delivery, dirfd, "plots/a.png", force, &err)
 *     deliver_write(&delivery, data, len, &err)      any number of times
 *     deliver_commit(&delivery, mode, sha256, &err)
 *     deliver_finish(&delivery)                      always; without commit nothing is left */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct delivery {
	int parent;    /* owned; the folder of the file */
	int fd;        /* owned; the new file, not yet named.  -1: it exists, only compare */
	char temp[48]; /* its name until commit, where the file system wants one; else empty */
	const char *name;
	bool force;
	uint64_t size; /* so far, holes and all */
};

int deliver_begin(struct delivery *delivery, int dirfd, const char *path, bool force,
		  struct err *err);

/* Blocks of zeros become holes, so that a sparse file stays one.  Returns how many of the bytes
 * take room. */
int deliver_write(struct delivery *delivery, const void *data, size_t len, struct err *err);

/* sha256 is of what was written: a file that is there already with the same bytes is as good. */
int deliver_commit(struct delivery *delivery, uint32_t mode, const char *sha256, struct err *err);
void deliver_finish(struct delivery *delivery);
