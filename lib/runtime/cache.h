/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.h - what candidates answered, remembered between processes.
 *
 * STATE/runtimes.cache is text; docs are in cache.c.  It is believed only when it belongs to this
 * user and nobody else may write it, and entry by entry only while the file it speaks of is the
 * same.  Everything else about it is ignored, never an error. */
#pragma once

#include "runtime/runtime.h"
#include "runtime/search.h"

#include <stdint.h>

struct stat;

#define FOUND_MAX 256
#define CACHE_SIZE_MAX (256 * 1024)

/* Which file it was. */
struct identity {
	uint64_t dev, ino, size;
	int64_t mtime_ns, ctime_ns;
};

/* One candidate and its answer. */
struct found {
	struct runtime runtime;
	struct identity identity;    /* of key */
	char key[RUNTIME_PATH_SIZE]; /* the candidate, symlinks resolved */
	bool hidden; /* a shim: it led to another candidate, or to nothing that concerns us */
	bool retry;  /* it failed in a way that may pass: not remembered */
};

struct findings {
	uint64_t environment; /* search_environment() at the time */
	uint64_t manifests;   /* their fingerprint */
	struct places places;
	struct found *items; /* owned, FOUND_MAX of them */
	size_t count;
};

int findings_init(struct findings *ret_findings);
void findings_finish(struct findings *findings);

struct identity identity_of(const struct stat *st);
bool identity_is_same(const struct identity *a, const struct identity *b);

/* The entry of that language and candidate, or NULL. */
struct found *findings_get(const struct findings *findings, const char *lang, const char *key);

/* Reads text into empty findings; -EINVAL when anything about it is odd. */
int cache_parse(char *text, size_t len, struct findings *findings);

/* 0 or -errno. */
int cache_load(const char *state_dir, struct findings *findings);
int cache_save(const char *state_dir, const struct findings *findings);
