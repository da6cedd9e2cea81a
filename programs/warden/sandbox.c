/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox.h"

#include "base/auto.h"
#include "base/err.h"

#include <stdio.h>
#include <string.h>

#define SANDBOXES_MAX 1024

static struct sandbox table[SANDBOXES_MAX];
static unsigned n_sandboxes, n_doomed;

static struct sandbox *find(const char *id)
{
	for (size_t i = 0; i < SANDBOXES_MAX; i++)
		if (table[i].state != SANDBOX_FREE && table[i].state != SANDBOX_DOOMED &&
		    strcmp(table[i].id, id) == 0)
			return &table[i];
	return NULL;
}

struct sandbox *sandbox_find(const char *id, struct err *err)
{
	struct sandbox *sandbox = find(id);

	if (!sandbox)
		err_make(err, ERR_NOT_FOUND, "there is no sandbox '%s'", id);
	return sandbox;
}

static struct sandbox *find_free(void)
{
	for (size_t i = 0; i < SANDBOXES_MAX; i++)
		if (table[i].state == SANDBOX_FREE)
			return &table[i];
	return NULL;
}

int sandbox_create(const char *id, const struct warden_create *create,
		   struct sandbox_facts *ret_facts, int *ret_stream, struct err *err)
{
	const struct backend *backend = backend_find(create->tier);
	struct backend_spec spec = { .id = id, .create = create };
	struct sandbox *sandbox = find_free();
	void *jail = NULL;

	if (!backend)
		return err_make(err, ERR_ISOLATION,
				"isolation '%s' is not to be had here; this build has 'jail'",
				tier_name(create->tier));
	if (find(id))
		return err_make(err, ERR_CONFLICT, "the sandbox '%s' is there already", id);
	if (!sandbox)
		return err_make(err, ERR_LIMIT, "%d sandboxes are there already", SANDBOXES_MAX);
	int r = limits_check(&create->limits, err);
	if (r == 0)
		r = backend->probe(err);
	if (r == 0)
		r = backend->create(&spec, &jail, err);
	if (r == 0)
		r = backend->start(jail, &spec, ret_facts, ret_stream, err);
	if (r < 0) {
		backend->destroy(jail);
		return r;
	}
	*sandbox = (struct sandbox){ .state = SANDBOX_RUNNING, .backend = backend, .jail = jail };
	snprintf(sandbox->id, sizeof(sandbox->id), "%s", id);
	n_sandboxes++;
	return 0;
}

static int must_run(const struct sandbox *sandbox, struct err *err)
{
	if (sandbox->state == SANDBOX_ENDED)
		return err_make(err, ERR_CONFLICT, "the sandbox '%s' has ended", sandbox->id);
	return 0;
}

int sandbox_limits(struct sandbox *sandbox, const struct limits *limits, struct err *err)
{
	int r = must_run(sandbox, err);

	if (r == 0)
		r = limits_check(limits, err);
	return r < 0 ? r : sandbox->backend->limits(sandbox->jail, limits, err);
}

int sandbox_stats(struct sandbox *sandbox, struct err *err)
{
	enum warden_event event = WARDEN_EVENT_NONE;
	int r = sandbox->backend->stats(sandbox->jail, &sandbox->usage, &event, err);

	if (event == WARDEN_EVENT_ENDED)
		sandbox->state = SANDBOX_ENDED;
	return r;
}

int sandbox_freeze(struct sandbox *sandbox, struct err *err)
{
	int r = must_run(sandbox, err);

	if (r == 0)
		r = sandbox->backend->freeze(sandbox->jail, err);
	if (r == 0)
		sandbox->state = SANDBOX_FROZEN;
	return r;
}

int sandbox_thaw(struct sandbox *sandbox, struct err *err)
{
	int r = must_run(sandbox, err);

	if (r == 0)
		r = sandbox->backend->thaw(sandbox->jail, err);
	if (r == 0)
		sandbox->state = SANDBOX_RUNNING;
	return r;
}

int sandbox_kill(struct sandbox *sandbox, struct err *err)
{
	int r = sandbox->backend->kill(sandbox->jail, err);

	if (r == 0)
		sandbox->state = SANDBOX_ENDED;
	return r;
}

static void destroy(struct sandbox *sandbox)
{
	sandbox->backend->destroy(sandbox->jail);
	*sandbox = (struct sandbox){ .state = SANDBOX_FREE };
	n_sandboxes--;
}

void sandbox_doom(struct sandbox *sandbox)
{
	sandbox->state = SANDBOX_DOOMED;
	n_doomed++;
}

void sandbox_sweep(void)
{
	for (size_t i = 0; n_doomed > 0 && i < SANDBOXES_MAX; i++)
		if (table[i].state == SANDBOX_DOOMED) {
			destroy(&table[i]);
			n_doomed--;
		}
}

void sandbox_destroy_all(void)
{
	for (size_t i = 0; i < SANDBOXES_MAX; i++)
		if (table[i].state != SANDBOX_FREE)
			destroy(&table[i]);
}

bool sandbox_any(void)
{
	return n_sandboxes > 0;
}

void sandbox_watch(sandbox_event_fn *on_event, void *context)
{
	for (size_t i = 0; i < SANDBOXES_MAX; i++) {
		struct sandbox *sandbox = &table[i];
		enum warden_event event = WARDEN_EVENT_NONE;
		struct err ignored;
		if (sandbox->state != SANDBOX_RUNNING && sandbox->state != SANDBOX_FROZEN)
			continue;
		if (sandbox->backend->stats(sandbox->jail, &sandbox->usage, &event, &ignored) < 0)
			continue;
		if (event == WARDEN_EVENT_ENDED)
			sandbox->state = SANDBOX_ENDED;
		if (event != WARDEN_EVENT_NONE)
			on_event(context, sandbox, event);
	}
}
