/* SPDX-License-Identifier: Apache-2.0
 *
 * template.h - the small directory tree that every root file system starts from.
 *
 * Two layers of a sandbox's root: the base, which is the same for all of them and lies in the state
 * directory (the usual mount points, the synthetic files of /etc, most of what is laid over /proc),
 * and over it the template, which tells the limits and has the plan's own mount points.  Sandboxes
 * see both through an overlay of their own, so one of each serves many. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;
struct plan;

/* What of /proc is hidden, and behind what. */
struct proc_mask {
	char name[48];   /* below /proc */
	char source[32]; /* below /.cay/mask */
};

#define PROC_MASKS_MAX 96

/* What a sandbox may have of these, and is told in /proc/sys. */
#define TEMPLATE_INOTIFY_INSTANCES "16"
#define TEMPLATE_INOTIFY_WATCHES "8192"

/* Everything at the top of /proc that is not known to be harmless.  Returns the number. */
int template_proc_masks(int proc_fd, struct proc_mask ret_masks[PROC_MASKS_MAX], struct err *err);

/* Fill the empty directory dirfd. */
int template_build_base(int dirfd, int proc_fd, struct err *err);
int template_build(int dirfd, int proc_fd, const struct plan *plan, struct err *err);
