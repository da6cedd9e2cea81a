/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher.h - the process that lives in U and makes sandboxes there.
 *
 * It is the first process of U's pid namespace: when it ends, for whatever reason, the kernel ends
 * every sandbox of U with it.  It ends when the warden does, since its socket then closes. */
#pragma once

#include "plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

#define LAUNCHER_SLOTS 1024

struct launcher {
	pid_t pid; /* 0: not running */
	int sock;
	uint8_t ended[LAUNCHER_SLOTS / 8]; /* sandboxes that were reaped */
};

/* ids stays the caller's and must outlive the launcher. */
int launcher_start(struct launcher *launcher, const struct ids *ids, struct err *err);

/* Sends a plan of len bytes with its descriptors and waits for the answer, at most 20 s.
 * *ret_fd, when not NULL, gets the descriptor that came along, or -1. */
int launcher_ask(struct launcher *launcher, const struct plan *plan, size_t len, const int *fds,
		 size_t n_fds, struct launcher_reply *ret_reply, int *ret_fd, struct err *err);

/* Takes what the launcher said on its own.  -EPIPE when it is gone. */
int launcher_listen(struct launcher *launcher, struct err *err);

bool launcher_has_ended(const struct launcher *launcher, uint32_t slot);
void launcher_forget(struct launcher *launcher, uint32_t slot);

/* Ends it and everything in U. */
void launcher_stop(struct launcher *launcher);

/* Its main function, in the child: launcher_main.c. */
_Noreturn void launcher_main(int sock, const struct ids *ids);
