/* SPDX-License-Identifier: Apache-2.0
 *
 * build.h - makes a layer of libraries with the interpreter's own pip.
 *
 * Pinned by a lock file with hashes; wheels only, so that nothing of a package runs while it is
 * installed.  Built beside its place under a lock, tried, then renamed: it is there whole or not
 * at all, and one that was killed is swept by the next. */
#pragma once

#include "runtime/layers.h"
#include "runtime/runtime.h"

struct err;

#define BUILD_TAIL_SIZE 2048

/* A line about what is being done: "numpy 2.5.4", "compiling". */
typedef void (*build_fn)(void *arg, const char *stage, const char *what);

struct build {
	const struct runtime *runtime;
	const char *state_dir;
	const char *set;    /* data */
	const char *lock;   /* path of the lock file */
	const char *digest; /* of lock, runtime and place of its libraries: the layer's name */
	build_fn on_stage;  /* may be NULL */
	void *arg;
	char tail[BUILD_TAIL_SIZE]; /* after a failure: the last lines of what failed */
	char reason[256];           /* with index_failed: pip's own, or empty */
	bool index_failed;          /* pip could not get the packages, or there is no pip */
	bool held;                  /* our own: the lock is taken, by lock_fd */
	int lock_fd;
};

/* 0 when it was made, 1 when it was there already. */
int build_layer(struct build *build, struct err *err);

/* Do these modules (python's import list) load with what is there?  site: a directory that is
 * put first, or NULL. */
int build_try_imports(struct build *build, const char *modules, const char *site, struct err *err);

/* The modules of a set, as python's import statement lists them; NULL: no such set. */
const char *build_modules(const char *set);
