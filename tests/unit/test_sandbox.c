/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox.h"

#include "fake_backend.h"
#include "warden_fixture.h"

static struct warden_create create;
static struct sandbox_facts facts;
static int stream;

static int make(const char *id)
{
	create.limits = profile_find(NULL)->limits;
	return sandbox_create(id, &create, &facts, &stream, &err);
}

TEST(sandbox_lives_from_create_to_sweep)
{
	CHECK_INT(make("b1"), 0);
	CHECK_INT(fake.probes + fake.creates + fake.starts, 3);
	CHECK(sandbox_any());
	struct sandbox *sandbox = sandbox_find("b1", &err);
	CHECK(sandbox != NULL);
	CHECK_INT(sandbox->state, SANDBOX_RUNNING);
	CHECK_INT(sandbox_stats(sandbox, &err), 0);
	CHECK_INT(sandbox->usage.peak_pids, 7);
	CHECK_INT(sandbox_kill(sandbox, &err), 0);
	sandbox_doom(sandbox);
	CHECK(sandbox_find("b1", &err) == NULL);
	CHECK_INT(fake.jails, 1);
	sandbox_sweep();
	CHECK_INT(fake.jails, 0);
	CHECK(!sandbox_any());
	sandbox_sweep();
	CHECK_INT(fake.destroys, 1);
}

TEST(sandbox_create_leaves_nothing_when_a_step_fails)
{
	static const char *const steps[] = { "probe", "create", "start" };

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		fake.fail = steps[i];
		CHECK_INT(make("b1"), -EPERM);
		CHECK_INT(err.kind, ERR_SETUP);
		CHECK_INT(fake.jails, 0);
		CHECK(!sandbox_any());
		CHECK(sandbox_find("b1", &err) == NULL);
	}
	fake.fail = NULL;
	CHECK_INT(make("b1"), 0);
	sandbox_destroy_all();
}

TEST(sandbox_create_refuses_bad_limits_before_it_does_anything)
{
	CHECK_INT(sandbox_create("b1", &create, &facts, &stream, &err), -EINVAL);
	CHECK_INT(fake.probes, 0);
}

TEST(sandbox_create_refuses_every_tier_that_is_not_here)
{
	for (create.tier = TIER_JAIL + 1; create.tier < TIERS_; create.tier++) {
		CHECK_INT(make("b1"), -EOPNOTSUPP);
		CHECK_INT(err.kind, ERR_ISOLATION);
		CHECK(strstr(err.text, tier_name(create.tier)) != NULL);
	}
	CHECK_INT(fake.probes + fake.creates, 0);
}

TEST(sandbox_ids_are_unique)
{
	CHECK_INT(make("b1"), 0);
	CHECK_INT(make("b1"), -EBUSY);
	CHECK_INT(make("b2"), 0);
	CHECK(sandbox_find("b1", &err) != sandbox_find("b2", &err));
	CHECK(sandbox_find("b3", &err) == NULL);
	CHECK_INT(err.kind, ERR_NOT_FOUND);
	sandbox_destroy_all();
	CHECK_INT(fake.jails, 0);
}

TEST(sandbox_number_1025_is_refused)
{
	char id[16];

	for (int i = 0; i < 1024; i++) {
		snprintf(id, sizeof(id), "b%d", i);
		CHECK_INT(make(id), 0);
	}
	CHECK_INT(make("bx"), -EDQUOT);
	CHECK_INT(fake.jails, 1024);
	sandbox_destroy_all();
	CHECK_INT(fake.jails, 0);
}

TEST(sandbox_that_ended_takes_no_more_orders)
{
	CHECK_INT(make("b1"), 0);
	struct sandbox *sandbox = sandbox_find("b1", &err);
	CHECK_INT(sandbox_freeze(sandbox, &err), 0);
	CHECK_INT(sandbox->state, SANDBOX_FROZEN);
	CHECK_INT(sandbox_thaw(sandbox, &err), 0);
	CHECK_INT(sandbox->state, SANDBOX_RUNNING);
	CHECK_INT(sandbox_limits(sandbox, &create.limits, &err), 0);
	CHECK_INT(sandbox_kill(sandbox, &err), 0);
	CHECK_INT(sandbox_freeze(sandbox, &err), -EBUSY);
	CHECK_INT(sandbox_thaw(sandbox, &err), -EBUSY);
	CHECK_INT(sandbox_limits(sandbox, &create.limits, &err), -EBUSY);
	CHECK_INT(sandbox_kill(sandbox, &err), 0);
	CHECK_INT(fake.freezes + fake.thaws + fake.limits, 3);
	sandbox_destroy_all();
}

TEST(sandbox_that_cannot_be_frozen_or_killed_keeps_its_state)
{
	CHECK_INT(make("b1"), 0);
	struct sandbox *sandbox = sandbox_find("b1", &err);
	fake.fail = "freeze";
	CHECK(sandbox_freeze(sandbox, &err) < 0);
	fake.fail = "kill";
	CHECK(sandbox_kill(sandbox, &err) < 0);
	CHECK_INT(sandbox->state, SANDBOX_RUNNING);
	sandbox_destroy_all();
}

TEST(sandbox_limits_are_checked_when_they_change)
{
	struct limits none = { 0 };

	CHECK_INT(make("b1"), 0);
	CHECK_INT(sandbox_limits(sandbox_find("b1", &err), &none, &err), -EINVAL);
	CHECK_INT(fake.limits, 0);
	sandbox_destroy_all();
}

static int events;

static void on_event(void *context, const struct sandbox *sandbox, enum warden_event event)
{
	CHECK(context == &events);
	CHECK_STR(sandbox->id, "b1");
	CHECK_INT(event, fake.event);
	events++;
}

TEST(sandbox_watch_tells_what_happened_and_an_end_once)
{
	CHECK_INT(make("b1"), 0);
	sandbox_watch(on_event, &events);
	CHECK_INT(events, 0);
	fake.event = WARDEN_EVENT_DISK;
	sandbox_watch(on_event, &events);
	CHECK_INT(events, 1);
	CHECK_INT(sandbox_freeze(sandbox_find("b1", &err), &err), 0);
	fake.event = WARDEN_EVENT_ENDED;
	sandbox_watch(on_event, &events);
	sandbox_watch(on_event, &events);
	CHECK_INT(events, 2);
	CHECK_INT(sandbox_find("b1", &err)->state, SANDBOX_ENDED);
	sandbox_destroy_all();
}
