/* SPDX-License-Identifier: Apache-2.0
 *
 * quota.h - project quotas of ext4 and xfs: a limit on a directory, where the file system keeps
 * them (mounted with prjquota).  Needs the machine's root. */
#pragma once

#include "wire/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct err;

/* Does the file system under the descriptor keep and enforce them? */
bool quota_is_kept(int dir_fd);

/* Puts the empty directory into a project of its own with these limits. */
int quota_start(int dir_fd, uint32_t project, const struct limits *limits, struct err *err);

/* What lies in the project now; sets disk_full when a limit is reached. */
void quota_usage(int dir_fd, uint32_t project, const struct limits *limits, struct usage *usage);

/* Forgets the limits.  The files go by themselves. */
void quota_stop(int dir_fd, uint32_t project);
