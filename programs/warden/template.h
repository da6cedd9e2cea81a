/* SPDX-License-Identifier: Apache-2.0
 *
 * template.h - the small directory tree that every root file system starts from.
 *
 * It holds the mount points, the synthetic files of /etc and the files that are laid over /proc.
 * Sandboxes see it as the upper layer of an overlay of their own, so one template serves many. */
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

/* Everything at the top of /proc that is not known to be harmless.  Returns the number. */
int template_proc_masks(int proc_fd, struct proc_mask ret_masks[PROC_MASKS_MAX], struct err *err);

/* Fills the empty directory dirfd. */
int template_build(int dirfd, int proc_fd, const struct plan *plan, struct err *err);
