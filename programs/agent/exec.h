/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.h - a process begins: pipes or a terminal, a fork, the code's cgroups, execve().
 *
 * The agent does not wait for the exec: the new process may be frozen or stopped before it gets
 * there, and everybody else must go on.  It reports through process.report instead. */
#pragma once

#include "sandbox.h"

/* On success the channel is a process whose report is still to come. */
int exec_start(struct sandbox *sandbox, struct channel *channel, const struct request *request,
	       struct err *err);
