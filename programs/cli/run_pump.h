/* SPDX-License-Identifier: Apache-2.0
 *
 * run_pump.h - carries bytes between a program in the sandbox and our own stdin, stdout and
 * stderr until it ends: one poll loop over the agent, the warden, signals, the wall clock and the
 * three streams.  A slow reader of stdout never stops the clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct agent_exec;
struct err;
struct run;

/* Runs one program on a channel.  Its end is in run->ending. */
int pump_program(struct run *run, uint32_t channel, const struct agent_exec *exec, struct err *err);
