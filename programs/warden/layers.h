/* SPDX-License-Identifier: Apache-2.0
 *
 * layers.h - what the sandboxes of U share, and how a plan becomes the root of one.
 *
 * A source that a plan names is attached once, at /l/N, read-only; sandboxes of the same shape
 * have one template, at /t/N.  Both stay as long as the launcher does. */
#pragma once

#include "ids.h"
#include "jailroot.h"
#include "template.h"

#include <stdbool.h>
#include <stddef.h>

struct err;
struct plan;

#define LAYERS_MAX 128
#define TEMPLATES_MAX 128

struct layers {
	const struct ids *ids; /* borrowed */
	int proc_fd;           /* of U; borrowed */
	bool with_host;        /* an ordinary user: sources are below /host, else descriptors */
	struct proc_mask masks[PROC_MASKS_MAX];
	int n_masks;
	char *sources[LAYERS_MAX]; /* of /l/N; owned */
	unsigned n_sources;
	char *templates[TEMPLATES_MAX]; /* key of /t/N; owned */
	unsigned n_templates;
};

/* Fills *ret_root, which borrows from layers and plan.  fds are the plan's descriptors and stay
 * the caller's.  layers_close_root gives back what was opened, on failure too. */
int layers_plan_root(struct layers *layers, const struct plan *plan, const int *fds, size_t n_fds,
		     struct jail_root *ret_root, struct err *err);
void layers_close_root(struct jail_root *root);
