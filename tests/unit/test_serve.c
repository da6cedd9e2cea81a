/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include "fake_backend.h"
#include "sandbox.h"
#include "warden_fixture.h"

#define ID "baaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct peer peer = { .fd = -1, .may_name_paths = true };
static struct packet packet;
static struct warden_reply reply;
static int fd;

static int ask_bytes(size_t len)
{
	memset(&reply, 0xff, sizeof(reply));
	fd = 99;
	serve_request(&peer, &packet, len, &reply, &fd);
	return reply.failed ? -reply.err.errnum : 0;
}

static int ask(enum warden_ask what, const char *id)
{
	packet.request = (struct warden_request){ .ask = what, .serial = 7, .version = 1 };
	memcpy(packet.request.sandbox_id, id, strlen(id));
	size_t len = sizeof(packet.request);
	if (what == WARDEN_CREATE)
		len += offsetof(struct warden_create, strings) + packet.create.strings_len;
	return ask_bytes(len);
}

static void greet(void)
{
	CHECK_INT(ask(WARDEN_HELLO, ""), 0);
	packet.create.limits = profile_find(NULL)->limits;
}

TEST(hello_comes_first)
{
	for (int what = 0; what < WARDEN_ASKS_; what++) {
		if (what == WARDEN_HELLO)
			continue;
		CHECK_INT(ask((enum warden_ask)what, ID), -EBUSY);
		CHECK_INT(reply.serial, 7);
	}
	CHECK_INT(fake.probes, 0);
	greet();
	CHECK_INT(fd, -1);
}

TEST(hello_comes_only_once)
{
	greet();
	CHECK_INT(ask(WARDEN_HELLO, ""), -EBUSY);
	CHECK(peer.said_hello);
}

TEST(hello_of_another_version_is_none)
{
	packet.request = (struct warden_request){ .ask = WARDEN_HELLO, .version = 2 };
	CHECK_INT(ask_bytes(sizeof(packet.request)), -EPROTO);
	CHECK(!peer.said_hello);
	CHECK_INT(ask(WARDEN_STATS, ID), -EBUSY);
}

TEST(unknown_asks_are_refused)
{
	greet();
	CHECK_INT(ask((enum warden_ask)WARDEN_ASKS_, ID), -EPROTO);
	packet.request.ask = UINT32_MAX;
	CHECK_INT(ask_bytes(sizeof(packet.request)), -EPROTO);
}

TEST(a_request_of_the_wrong_length_is_refused)
{
	greet();
	for (size_t len = 0; len < sizeof(packet.request); len++) {
		CHECK_INT(ask_bytes(len), -EPROTO);
		CHECK_INT(reply.serial, 0);
	}
	packet.request.ask = WARDEN_STATS;
	CHECK_INT(ask_bytes(sizeof(packet.request) + 1), -EPROTO);
	CHECK_INT(ask_bytes(sizeof(packet)), -EPROTO);
	CHECK_STR(reply.err.text + strlen(reply.err.text) - strlen("bytes too many"),
		  "bytes too many");
}

TEST(ids_that_are_none_are_refused)
{
	static const char *const bad[] = { "", "b", "../../etc", "xaaaaaaaaaaaaaaaaaaaaaaaaaa",
					   "baaaaaaaaaaaaaaaaaaaaaaaaaaa" };

	greet();
	for (int what = WARDEN_CREATE; what < WARDEN_ASKS_; what++)
		for (size_t i = 0; i < ARRAY_LEN(bad); i++)
			CHECK_INT(ask((enum warden_ask)what, bad[i]), -EINVAL);
	CHECK_INT(fake.probes, 0);
}

TEST(a_foreign_id_is_not_found)
{
	greet();
	CHECK_INT(ask(WARDEN_CREATE, ID), 0);
	for (int what = WARDEN_LIMITS; what < WARDEN_ASKS_; what++)
		CHECK_INT(ask((enum warden_ask)what, "bbbbbbbbbbbbbbbbbbbbbbbbbbb"), -ENOENT);
	CHECK_INT(fake.kills + fake.stats + fake.limits + fake.freezes, 0);
	sandbox_destroy_all();
}

TEST(a_sandbox_is_made_and_ended_by_its_id)
{
	greet();
	fake.stream = 42;
	CHECK_INT(ask(WARDEN_CREATE, ID), 0);
	CHECK_INT(fd, 42);
	CHECK_STR(reply.sandbox_id, ID);
	CHECK_INT(reply.facts.tier, TIER_JAIL);
	CHECK_INT(ask(WARDEN_CREATE, ID), -EBUSY);
	CHECK_INT(ask(WARDEN_STATS, ID), 0);
	CHECK_INT(reply.usage.peak_pids, 7);
	CHECK_INT(fd, -1);
	CHECK_INT(ask(WARDEN_FREEZE, ID), 0);
	CHECK_INT(ask(WARDEN_THAW, ID), 0);
	CHECK_INT(ask(WARDEN_LIMITS, ID), -EINVAL); /* all 0 */
	CHECK_INT(ask(WARDEN_KILL, ID), 0);
	CHECK_INT(ask(WARDEN_DESTROY, ID), 0);
	CHECK_INT(reply.usage.peak_pids, 7);
	CHECK_INT(ask(WARDEN_DESTROY, ID), -ENOENT);
	sandbox_sweep();
	CHECK_INT(fake.jails, 0);
}

TEST(a_create_request_is_checked_before_anything_is_made)
{
	greet();
	packet.request = (struct warden_request){ .ask = WARDEN_CREATE };
	memcpy(packet.request.sandbox_id, ID, sizeof(ID));
	CHECK_INT(ask_bytes(sizeof(packet.request)), -EPROTO);
	packet.create.n_binds = 1;
	CHECK_INT(ask(WARDEN_CREATE, ID), -EPROTO);
	packet.create.n_binds = 0;
	packet.create.tier = TIERS_;
	CHECK_INT(ask(WARDEN_CREATE, ID), -EPROTO);
	CHECK_INT(fake.probes + fake.creates, 0);
}

TEST(a_client_that_is_not_the_user_names_no_paths)
{
	greet();
	peer.may_name_paths = false;
	CHECK_INT(warden_create_bind(&packet.create, BIND_TREE, "/root", "/usr", "", &err), 0);
	CHECK_INT(ask(WARDEN_CREATE, ID), -EINVAL);
	CHECK_INT(fake.probes, 0);
	peer.may_name_paths = true;
	CHECK_INT(ask(WARDEN_CREATE, ID), 0);
	sandbox_destroy_all();
}

TEST(a_destroy_that_cannot_kill_says_so_and_destroys)
{
	greet();
	CHECK_INT(ask(WARDEN_CREATE, ID), 0);
	fake.fail = "kill";
	CHECK_INT(ask(WARDEN_DESTROY, ID), -EPERM);
	sandbox_sweep();
	CHECK_INT(fake.jails, 0);
}
