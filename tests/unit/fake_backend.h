/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_backend.h - a tier that starts nothing and remembers what it was asked.
 *
 * It defines backend_find, so a test that includes it is linked without the real backends, and no
 * request of its can start anything. */
#pragma once

#include "backend.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

struct fake_jail {
	int alive, frozen;
	struct limits limits;
};

static struct {
	int probes, creates, starts, limits, stats, freezes, thaws, kills, destroys; /* calls */
	int jails;               /* made and not given back */
	const char *fail;        /* the step that fails, or NULL */
	enum warden_event event; /* what stats says */
	int stream;              /* what start hands over */
} fake = { .stream = -1 };

static int fake_step(const char *name, int *count, struct err *err)
{
	(*count)++;
	if (fake.fail && strcmp(fake.fail, name) == 0)
		return err_make(err, ERR_SETUP, "'%s' fails", name);
	return 0;
}

static int fake_probe(struct err *err)
{
	return fake_step("probe", &fake.probes, err);
}

static int fake_create(const struct backend_spec *spec, void **ret_state, struct err *err)
{
	struct fake_jail *jail = calloc(1, sizeof(*jail));

	if (!jail)
		abort();
	jail->limits = spec->create->limits;
	*ret_state = jail;
	fake.jails++;
	return fake_step("create", &fake.creates, err);
}

static int fake_start(void *state, const struct backend_spec *spec, struct sandbox_facts *ret_facts,
		      int *ret_stream, struct err *err)
{
	struct fake_jail *jail = state;
	int r = fake_step("start", &fake.starts, err);

	if (r < 0)
		return r;
	jail->alive = 1;
	ret_facts->tier = spec->create->tier;
	*ret_stream = fake.stream;
	return 0;
}

static int fake_limits(void *state, const struct limits *limits, struct err *err)
{
	((struct fake_jail *)state)->limits = *limits;
	return fake_step("limits", &fake.limits, err);
}

static int fake_stats(void *state, struct usage *ret_usage, enum warden_event *ret_event,
		      struct err *err)
{
	struct fake_jail *jail = state;
	int r = fake_step("stats", &fake.stats, err);

	if (r < 0)
		return r;
	ret_usage->peak_pids = 7;
	*ret_event = jail->alive ? fake.event : WARDEN_EVENT_NONE;
	return 0;
}

static int fake_freeze(void *state, struct err *err)
{
	((struct fake_jail *)state)->frozen = 1;
	return fake_step("freeze", &fake.freezes, err);
}

static int fake_thaw(void *state, struct err *err)
{
	((struct fake_jail *)state)->frozen = 0;
	return fake_step("thaw", &fake.thaws, err);
}

static int fake_kill(void *state, struct err *err)
{
	int r = fake_step("kill", &fake.kills, err);

	if (r == 0)
		((struct fake_jail *)state)->alive = 0;
	return r;
}

static void fake_destroy(void *state)
{
	fake.destroys++;
	if (!state)
		return;
	fake.jails--;
	free(state);
}

const struct backend *backend_find(uint32_t tier)
{
	static const struct backend backend = {
		.name = "fake",
		.tier = TIER_JAIL,
		.probe = fake_probe,
		.create = fake_create,
		.start = fake_start,
		.limits = fake_limits,
		.stats = fake_stats,
		.freeze = fake_freeze,
		.thaw = fake_thaw,
		.kill = fake_kill,
		.destroy = fake_destroy,
	};

	return tier == TIER_JAIL ? &backend : NULL;
}
