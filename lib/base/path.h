/* SPDX-License-Identifier: Apache-2.0
 *
 * path.h - names are resolved by the kernel, below a descriptor, never by string.
 *
 * Everything here uses openat2(2), so a symlink that somebody planted or swaps
 * while we look cannot lead out of the tree that dirfd stands for. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Opens path below dirfd; symlinks inside the tree are followed as if dirfd were "/". */
int path_open_in_root(int dirfd, const char *path, int flags, mode_t mode);

/* Opens path below dirfd; no symlink at all, no other mount, no magic link. */
int path_open_beneath(int dirfd, const char *path, int flags, mode_t mode);

/* mkdir -p below dirfd, without following a symlink. */
int path_make_dirs(int dirfd, const char *path, mode_t mode);

/* Removes a tree below dirfd, itself included.  Never follows a symlink or crosses a mount.  The
 * first error is returned as -errno, but all that can go is gone. */
int path_remove_tree(int dirfd, const char *name);

/* A name of one component: not empty, not "." or "..", no '/', at most 255 bytes. */
bool path_is_name(const char *name);
