/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.h - looks at a sandbox from outside and believes only what the kernel shows.
 *
 * Runs in the launcher, through U's own procfs, after the agent was started and before anybody
 * can send it a byte. */
#pragma once

#include "inside.h"

#include <stdint.h>
#include <sys/types.h>

struct err;
struct ids;
struct plan;

/* Fills the bits of the layers that hold.  One that should hold and does not is ERR_SETUP, with
 * the layer's name in the sentence.  host_net is the link of the host's network namespace; the
 * launcher itself is already in the sandbox's. */
int verify_sandbox(int proc_fd, pid_t pid, const char *host_net, const struct ids *ids,
		   const struct plan *plan, const struct inside *inside, uint32_t *ret_held,
		   uint32_t *ret_absent, struct err *err);
