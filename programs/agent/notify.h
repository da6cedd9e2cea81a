/* SPDX-License-Identifier: Apache-2.0
 *
 * notify.h - system calls that the filter refuses with a word to us: counted, answered with EPERM.
 *
 * The arguments are never looked at: the caller could change what they point to.  The two ioctls
 * used here pass the filter for everybody and work on a listener only, which nobody but the agent
 * has.  The agent itself must never make a call that notifies: nobody would answer it. */
#pragma once

#include "out.h"

#include <stdbool.h>
#include <stdint.h>

#define NOTIFY_CALLS 512 /* numbers below this are counted one by one, the rest together */

struct notify {
	int fd; /* -1: not there */
	bool dirty;
	unsigned budget; /* answers left in this slice of time */
	int64_t slice_ms, told_ms;
	uint32_t times[NOTIFY_CALLS + 1];
};

void notify_init(struct notify *notify, int fd);

/* A loop of refused calls would make us burn time that its cgroup does not pay for; so it waits
 * for its answers.  False while the budget of this slice is used up. */
bool notify_is_wanted(struct notify *notify, int64_t now_ms);

/* Answers what is there; call it when the descriptor is readable. */
void notify_answer(struct notify *notify);

/* Tells the client what is new; a few times a second, or at once when `now`. */
void notify_tell(struct notify *notify, struct out *out, int64_t now_ms, bool now);

/* When notify_is_wanted() and, if there is room to tell, notify_tell() should be asked again;
 * INT64_MAX: not by time. */
int64_t notify_deadline(const struct notify *notify, bool can_tell);
