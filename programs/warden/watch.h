/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.h - counts what a process tree uses, where no cgroup does it for us.
 *
 * The launcher sees every process of U in its own /proc; those below an agent are its sandbox. */
#pragma once

#include "plan.h"

#include <sys/types.h>

/* cpu time of processes that are gone is remembered by their parents only once they were waited
 * for, so this can miss a little; memory is private and shared-memory pages, summed. */
void watch_tree(int proc_fd, pid_t agent, struct tree_usage *usage);

/* Adds what processes hold without a name or a mapping: memory files, /tmp and /dev/shm to the
 * memory, deleted files of the workspace (-1: none to count) to its bytes. */
void watch_files(int proc_fd, pid_t agent, int workspace_fd, struct tree_usage *usage);

/* No process below the agent may write another byte to a file: the workspace is full. */
void watch_stop_writes(int proc_fd, pid_t agent);

/* SIGKILL to every process below the agent, but not to it. */
void watch_kill_code(int proc_fd, pid_t agent);

/* Bytes and names below a directory, without crossing a mount or following a link. */
void watch_disk(int dir_fd, struct tree_usage *usage);
