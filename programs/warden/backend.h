/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.h - one way of isolating a sandbox.
 *
 * sandbox.c owns the state machine and calls these in order:
 *     probe (once)  create -> start -> [limits | stats | freeze -> thaw]* -> kill -> destroy
 * A backend never sees the network, the store or a client.
 *
 * The topology is the same for root and for an ordinary user.  A launcher lives in an outer user,
 * mount and pid namespace U; every jail is a child of U with a user namespace of its own.  What
 * is shared between jails (layers, templates, later zygotes) is attached in U; what belongs to
 * one jail travels to the launcher as descriptors.  A kernel that a zygote forks into a started
 * jail is handed to its agent over the socket `handover`, see wire/agent.h. */
#pragma once

#include "wire/warden.h"

struct err;

/* What the warden hands over when it asks for a sandbox. */
struct backend_spec {
	const char *id;                     /* until destroy */
	const struct warden_create *create; /* checked; until start has returned */
};

struct backend {
	const char *name;
	uint32_t tier; /* enum tier */

	/* Can this host run it?  Says which feature is missing. */
	int (*probe)(struct err *err);

	/* Makes all that must be given back later: ids, cgroups, workspace.  Runs nothing.  What
	 * was made before a failure is in *ret_state, too, for destroy. */
	int (*create)(const struct backend_spec *spec, void **ret_state, struct err *err);

	/* Builds the sandbox, starts the agent in it and proves every layer.  *ret_stream is the
	 * client's end of the agent's stream. */
	int (*start)(void *state, const struct backend_spec *spec, struct sandbox_facts *ret_facts,
		     int *ret_stream, struct err *err);

	/* New limits for a live sandbox; memory, cpu, pids, cpu_time and I/O can change. */
	int (*limits)(void *state, const struct limits *limits, struct err *err);

	/* Called every WATCH_MS while the sandbox lives, and once at its end.  The event, if any,
	 * is sent to the client. */
	int (*stats)(void *state, struct usage *ret_usage, enum warden_event *ret_event,
		     struct err *err);

	int (*freeze)(void *state, struct err *err);
	int (*thaw)(void *state, struct err *err);

	/* Ends every process and waits until they are gone.  May be called again. */
	int (*kill)(void *state, struct err *err);

	/* Gives everything back.  Accepts NULL and half-built state; cannot fail. */
	void (*destroy)(void *state);
};

#define WATCH_MS 50

extern const struct backend backend_jail; /* backend_jail.c */

/* The backend of that tier, or NULL when this build does not have it. */
const struct backend *backend_find(uint32_t tier);
