/* SPDX-License-Identifier: Apache-2.0
 *
 * mounts.h - new mounts, by descriptor, with their flags on before anybody can see them.
 *
 * Usable between clone and exec: no malloc, no logging.  Targets are resolved inside root_fd, so
 * a symlink in an image cannot point a mount at the host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;

struct mount_option {
	const char *key;
	const char *value; /* NULL: a flag */
};

/* A fresh file system that hangs nowhere yet.  attrs: MOUNT_ATTR_*.  The list of options ends with
 * a NULL key. */
int mounts_new(const char *type, const struct mount_option *options, unsigned attrs,
	       struct err *err);

/* A detached copy of the mount at path below dirfd ("" is dirfd itself), restricted. */
int mounts_clone(int dirfd, const char *path, unsigned attrs, struct err *err);

/* A read-only overlay of its own: `upper` over `lower`, both paths in our mount namespace. */
int mounts_overlay(const char *upper, const char *lower, struct err *err);

/* Hangs a detached mount at target below root_fd. */
int mounts_attach(int mount_fd, int root_fd, const char *target, struct err *err);

/* Adds attributes to a mount, attached or not. */
int mounts_restrict(int mount_fd, unsigned attrs, struct err *err);

/* Makes root_fd's mount the root of this mount namespace and lets go of all that was before. */
int mounts_pivot(int root_fd, struct err *err);
