/* SPDX-License-Identifier: Apache-2.0
 *
 * reap.h - the duties of PID 1: everybody's orphans end here, and everybody can be ended. */
#pragma once

#include "sandbox.h"

/* Waits for all that have ended; those with a channel get their exit recorded. */
void reap_all(struct sandbox *sandbox);

/* SIGKILL to everybody, again and again until only the agent is left; then AGENT_DONE on channel
 * 0.  Other signals are sent once. */
int reap_signal_all(struct sandbox *sandbox, int number, struct err *err);
void reap_kill_pump(struct sandbox *sandbox);

/* When reap_kill_pump() is due; INT64_MAX: never. */
int64_t reap_deadline(const struct sandbox *sandbox);
