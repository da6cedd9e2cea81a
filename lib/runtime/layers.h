/* SPDX-License-Identifier: Apache-2.0
 *
 * layers.h - libraries that are laid over a runtime: STATE/layers/python@3.12/DIGEST/.
 *
 * A layer is a read-only tree that looks like the runtime's prefix (or like /usr, for an
 * interpreter of /usr).  The link STATE/layers/python@3.12/SET names the one in force; for
 * interpreters of /usr, whose trees look different, it is SET.usr or SET.usr-local.  Directories
 * that no link names are leftovers. */
#pragma once

#include "runtime/runtime.h"

struct err;

#define LAYERS_DIGEST_SIZE 65
#define LAYERS_DATA "data" /* the only set so far */

/* The layer of that set for that runtime.  0 or -ENOENT; no more than two system calls. */
int layers_find(const char *state_dir, const struct runtime *runtime, const char *set,
		char ret_path[static PATH_MAX], char ret_digest[static LAYERS_DIGEST_SIZE]);

/* The name of the link for a set: data, data.usr. */
int layers_link_name(const struct runtime *runtime, const char *set,
		     char ret_name[static RUNTIME_NAME_SIZE]);

/* Opens STATE/layers/NAME and makes what is missing.  A descriptor or -errno. */
int layers_open_dir(const char *state_dir, const char *name, struct err *err);

/* Makes DIGEST, a directory in dirfd, the layer in force under the link's name, at once. */
int layers_publish(int dirfd, const char *digest, const char *link, struct err *err);

/* Each layer in force.  Stops at the first value that is not 0 and returns it. */
typedef int (*layers_fn)(void *arg, const char *name, const char *link, const char *digest);
int layers_each(const char *state_dir, layers_fn on_layer, void *arg);

/* Takes a layer away: the link first, then the tree.  ERR_NOT_FOUND when there is none. */
int layers_remove(const char *state_dir, const char *name, const char *link, struct err *err);

/* Removes the directories in dirfd that no link names: what an earlier build left when it was
 * killed.  The caller holds the lock of dirfd. */
void layers_sweep(int dirfd);
