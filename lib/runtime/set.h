/* SPDX-License-Identifier: Apache-2.0
 *
 * set.h - inside the runtime library: what runtimes_open() made. */
#pragma once

#include "runtime/cache.h"
#include "runtime/manifest.h"
#include "runtime/runtime.h"

struct runtimes {
	char dir[PATH_MAX];    /* of the manifests */
	const char *state_dir; /* borrowed; may be NULL */
	struct manifests manifests;
	struct findings findings;
	bool known;           /* findings are filled, from the cache or by looking */
	bool fresh;           /* by looking, in this process */
	struct runtime *list; /* owned: what runtimes_scan() gave out */
};

/* Fills findings from the cache when it still holds, else by looking. */
int set_know(struct runtimes *set, struct err *err);
/* By looking, at most once in a process. */
int set_look(struct runtimes *set, struct err *err);

/* The best usable candidate of a language for NAME@version (or empty), or NULL.  What turned out
 * to be not usable is marked so, with the reason. */
const struct found *set_pick(struct runtimes *set, const struct manifest *manifest,
			     const char *version);

/* ERR_NOT_FOUND or ERR_UNSUPPORTED: what is missing, what is there, how to get it. */
int set_refuse(const struct runtimes *set, const struct manifest *manifest, const char *version,
	       struct err *err);

/* Reads NAME[@VERSION]. */
int set_parse_lang(const struct runtimes *set, const char *lang,
		   const struct manifest **ret_manifest,
		   char ret_version[static RUNTIME_VERSION_SIZE], struct err *err);
