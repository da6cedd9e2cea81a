/* SPDX-License-Identifier: Apache-2.0
 *
 * sandbox.h - the sandboxes of this warden, by id, and where each is in its life. */
#pragma once

#include "backend.h"

struct err;

enum sandbox_state {
	SANDBOX_FREE,
	SANDBOX_RUNNING,
	SANDBOX_FROZEN,
	SANDBOX_ENDED,  /* its agent is gone; waits to be destroyed */
	SANDBOX_DOOMED, /* asked for; sandbox_sweep() does it */
};

struct sandbox {
	enum sandbox_state state;
	char id[ID_SIZE];
	const struct backend *backend;
	void *jail; /* the backend's own */
	struct usage usage;
};

/* Makes, starts and proves; on failure nothing of it is left. */
int sandbox_create(const char *id, const struct warden_create *create,
		   struct sandbox_facts *ret_facts, int *ret_stream, struct err *err);

/* The sandbox of that id, or NULL and ERR_NOT_FOUND. */
struct sandbox *sandbox_find(const char *id, struct err *err);

int sandbox_limits(struct sandbox *sandbox, const struct limits *limits, struct err *err);
int sandbox_stats(struct sandbox *sandbox, struct err *err);
int sandbox_freeze(struct sandbox *sandbox, struct err *err);
int sandbox_thaw(struct sandbox *sandbox, struct err *err);
int sandbox_kill(struct sandbox *sandbox, struct err *err);

/* All processes are gone already: what is left to give back can wait until the client has heard of
 * the end.  The id is unknown from here on. */
void sandbox_doom(struct sandbox *sandbox);

/* Destroys the doomed. */
void sandbox_sweep(void);
void sandbox_destroy_all(void);

/* Are there any? */
bool sandbox_any(void);

/* Looks at every running sandbox; calls on_event for what happened. */
typedef void sandbox_event_fn(void *context, const struct sandbox *sandbox,
			      enum warden_event event);
void sandbox_watch(sandbox_event_fn *on_event, void *context);
