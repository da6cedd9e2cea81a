/* SPDX-License-Identifier: Apache-2.0
 *
 * search.h - where on this host an interpreter may be.
 *
 * A place in a manifest is a directory; `~` and `$NAME` at its start come from the environment, a
 * component `*` is any name, and `$PATH` alone is each directory of PATH.  A place that is not
 * absolute is none.  Which directories were looked into is remembered with their times, so that
 * a later process knows whether it has to look again. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct manifest;

#define PLACES_MAX 192

struct place {
	char *path;       /* owned */
	int64_t mtime_ns; /* -1: it is not there */
};

/* Directories that were looked into.  Past PLACES_MAX none is added, and nothing in them found. */
struct places {
	struct place items[PLACES_MAX];
	size_t count;
};

void places_finish(struct places *places);

/* Are all of them as they were? */
bool places_are_unchanged(const struct places *places);

/* Adds one that was remembered.  False when there are too many. */
bool places_add(struct places *places, const char *path, int64_t mtime_ns);

/* Calls on_candidate with the path of each executable, as found and with symlinks resolved, in
 * the manifest's order; the same one may come more than once.  True from it ends the search. */
typedef bool (*search_fn)(void *arg, const char *path, const char *real);
void search_manifest(const struct manifest *manifest, struct places *places, search_fn on_candidate,
		     void *arg);

/* The variables of the environment that decide where is looked, as one number. */
uint64_t search_environment(void);
