/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/warden.h"

#include "base/sys.h"
#include "warden_fixture.h"

#include <sys/socket.h>

static struct warden_create create;

static size_t length(void)
{
	return offsetof(struct warden_create, strings) + create.strings_len;
}

static void fill(void)
{
	memset(&create, 0, sizeof(create));
	create.limits = profile_find(NULL)->limits;
	CHECK_INT(warden_create_bind(&create, BIND_TREE, "/usr", "/usr", "/layer", &err), 0);
	CHECK_INT(warden_create_bind(&create, BIND_INPUT, "/data/a.csv", "a.csv", "", &err), 0);
	CHECK_INT(warden_create_bind(&create, BIND_WORKSPACE_RW, "/data", "", NULL, &err), 0);
}

/* Checks a copy that is exactly as long as it says: a byte too many is seen. */
static int check(size_t len)
{
	char *copy = malloc(len ? len : 1);

	CHECK(copy != NULL);
	memcpy(copy, &create, len);
	err = (struct err){ 0 };
	int r = warden_create_check((const void *)copy, len, &err);
	free(copy);
	return r;
}

TEST(create_check_takes_what_our_own_functions_make)
{
	fill();
	CHECK_INT(check(length()), 0);
	memset(&create, 0, sizeof(create));
	CHECK_INT(check(length()), 0);
}

TEST(create_check_refuses_a_wrong_length)
{
	fill();
	CHECK_INT(check(length() - 1), -EPROTO);
	CHECK_INT(check(length() + 1), -EPROTO);
	CHECK_INT(check(0), -EPROTO);
	CHECK_INT(check(offsetof(struct warden_create, strings) - 1), -EPROTO);
	create.strings_len = WARDEN_STRINGS_MAX + 1;
	CHECK_INT(warden_create_check(&create, length(), &err), -EPROTO);
	create.strings_len = UINT32_MAX;
	CHECK_INT(warden_create_check(&create, length(), &err), -EPROTO);
}

static void no_end(void)
{
	create.strings[create.strings_len - 1] = 'x';
}

static void no_start(void)
{
	create.strings[0] = 'x';
}

static void many_binds(void)
{
	create.n_binds = WARDEN_BINDS_MAX + 1;
}

static void all_binds(void)
{
	create.n_binds = UINT32_MAX;
}

static void strange_tier(void)
{
	create.tier = TIERS_;
}

static void strange_layer(void)
{
	create.require = 1u << LAYERS_;
}

static void strange_flag(void)
{
	create.own_workspace = 2;
}

static void strange_kind(void)
{
	create.binds[1].kind = BIND_KINDS_;
}

static void source_outside(void)
{
	create.binds[0].source = create.strings_len;
}

static void target_outside(void)
{
	create.binds[1].target = UINT32_MAX;
}

static void over_outside(void)
{
	create.binds[2].over = create.strings_len;
}

static void no_strings(void)
{
	create.strings_len = 0;
}

TEST(create_check_refuses_each_wrong_number)
{
	static const struct {
		const char *name;
		void (*spoil)(void);
	} bad[] = {
		{ "strings without an end", no_end },
		{ "no empty string at 0", no_start },
		{ "one bind too many", many_binds },
		{ "4 billion binds", all_binds },
		{ "an unknown tier", strange_tier },
		{ "an unknown layer", strange_layer },
		{ "a flag that is 2", strange_flag },
		{ "an unknown kind of bind", strange_kind },
		{ "a source behind the strings", source_outside },
		{ "a target behind the strings", target_outside },
		{ "a layer behind the strings", over_outside },
		{ "binds without strings", no_strings },
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		fill();
		bad[i].spoil();
		printf("# %s\n", bad[i].name);
		CHECK_INT(check(length()), -EPROTO);
	}
}

TEST(create_check_refuses_paths_that_lead_elsewhere)
{
	static char longer[1100];
	static const struct {
		enum bind_kind kind;
		const char *source, *target, *over;
	} bad[] = {
		{ BIND_IMAGE, "", "/", "" },
		{ BIND_IMAGE, "relative", "/", "" },
		{ BIND_IMAGE, "/a/../b", "/", "" },
		{ BIND_IMAGE, "/a/..", "/", "" },
		{ BIND_IMAGE, "/..", "/", "" },
		{ BIND_IMAGE, longer, "/", "" },
		{ BIND_TREE, "/usr", "", "" },
		{ BIND_TREE, "/usr", "/", "" },
		{ BIND_TREE, "/usr", "usr", "" },
		{ BIND_TREE, "/usr", "/opt/../etc", "" },
		{ BIND_TREE, "/usr", "/opt/..", "" },
		{ BIND_TREE, "/usr", "/usr", "layer" },
		{ BIND_TREE, "/usr", "/usr", "/a/../b" },
		{ BIND_INPUT, "/f", "", "" },
		{ BIND_INPUT, "/f", ".", "" },
		{ BIND_INPUT, "/f", "..", "" },
		{ BIND_INPUT, "/f", ".hidden", "" },
		{ BIND_INPUT, "/f", "a/b", "" },
		{ BIND_INPUT, "/f", longer, "" },
		{ BIND_WORKSPACE_RW, "data", "", "" },
	};

	memset(longer, '/', 1);
	memset(longer + 1, 'x', sizeof(longer) - 2);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		memset(&create, 0, sizeof(create));
		CHECK_INT(warden_create_bind(&create, bad[i].kind, bad[i].source, bad[i].target,
					     bad[i].over, &err),
			  0);
		printf("# '%.40s' at '%.40s'\n", bad[i].source, bad[i].target);
		CHECK_INT(check(length()), -EINVAL);
	}
}

TEST(create_bind_refuses_more_than_fits)
{
	static char path[1000];

	memset(path, 'x', sizeof(path) - 1);
	memset(&create, 0, sizeof(create));
	for (int i = 0; i < WARDEN_BINDS_MAX; i++)
		CHECK_INT(warden_create_bind(&create, BIND_TREE, "/a", "/a", "", &err), 0);
	CHECK_INT(warden_create_bind(&create, BIND_TREE, "/a", "/a", "", &err), -EDQUOT);
	CHECK_INT(create.n_binds, WARDEN_BINDS_MAX);
	memset(&create, 0, sizeof(create));
	int r = 0;
	for (int i = 0; i < 100 && r >= 0; i++)
		r = warden_create_string(&create, path, &err);
	CHECK_INT(r, -EDQUOT);
	CHECK(create.strings_len <= WARDEN_STRINGS_MAX);
	CHECK_INT(warden_create_string(&create, "", &err), 0);
}

TEST(tiers_and_layers_have_names)
{
	for (unsigned i = 0; i < TIERS_; i++)
		CHECK_INT(tier_find(tier_name(i)), i);
	for (unsigned i = 0; i < LAYERS_; i++)
		CHECK_INT(layer_find(layer_name(i)), i);
	CHECK_STR(tier_name(TIERS_), "unknown");
	CHECK_STR(layer_name(UINT32_MAX), "unknown");
	CHECK_INT(tier_find("unknown"), -1);
	CHECK_INT(layer_find(""), -1);
}

/* The other side of a socketpair answers what it likes; the client believes only what fits. */
static struct warden warden;
static int other;

static void connect_pair(void)
{
	int pair[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	warden = (struct warden){ .fd = pair[0], .serial = 4 };
	other = pair[1];
}

static void say(struct warden_reply reply, int fd)
{
	CHECK_INT(fd_send(other, &reply, sizeof(reply), &fd, fd >= 0), 0);
}

static void hear(struct warden_request *ret_request)
{
	CHECK_INT(fd_recv(other, ret_request, sizeof(*ret_request), NULL, 0, NULL),
		  (ssize_t)sizeof(*ret_request));
}

TEST(a_client_takes_the_answer_to_its_own_question)
{
	struct usage usage = { 0 };
	struct warden_request request;

	connect_pair();
	say((struct warden_reply){ .serial = 0, .event = WARDEN_EVENT_DISK }, -1);
	say((struct warden_reply){ .serial = 4, .usage.cpu_us = 1 }, -1);
	say((struct warden_reply){ .serial = 5, .usage.cpu_us = 2 }, -1);
	CHECK_INT(warden_stats(&warden, "bx", &usage, &err), 0);
	CHECK_INT(usage.cpu_us, 2);
	hear(&request);
	CHECK_INT(request.ask, WARDEN_STATS);
	CHECK_INT(request.serial, 5);
	CHECK_STR(request.sandbox_id, "bx");
}

TEST(a_client_makes_the_wardens_error_its_own)
{
	struct warden_reply reply = { .serial = 5, .failed = 1, .err.kind = 77 };

	connect_pair();
	memset(reply.err.text, 0x1b, sizeof(reply.err.text));
	say(reply, 0); /* a descriptor with it is closed */
	CHECK_INT(warden_kill(&warden, "bx", &err), -EPROTO);
	CHECK_INT(err.kind, ERR_PROTOCOL);
	CHECK_INT(strspn(err.text, "?"), sizeof(err.text) - 1);
	CHECK_INT(fcntl(other + 1, F_GETFD), -1);
}

TEST(a_client_refuses_a_cut_answer_and_sees_the_end)
{
	connect_pair();
	CHECK_INT(fd_send(other, "x", 1, NULL, 0), 0);
	CHECK_INT(warden_freeze(&warden, "bx", &err), -EPROTO);
	close(other);
	CHECK(warden_thaw(&warden, "bx", &err) < 0);
	connect_pair();
	close(other);
	struct warden_reply event;
	CHECK_INT(warden_event(&warden, &event, &err), -EPIPE);
}

TEST(a_created_sandbox_without_its_stream_is_an_error)
{
	struct sandbox_facts facts;
	int fd = -1;

	connect_pair();
	say((struct warden_reply){ .serial = 4 }, -1);
	CHECK_INT(warden_create_recv(&warden, &facts, &fd, &err), -EPROTO);
	struct warden_reply reply = { .serial = 4 };
	memset(&reply.facts, 'x', sizeof(reply.facts));
	say(reply, 0);
	CHECK_INT(warden_create_recv(&warden, &facts, &fd, &err), 0);
	CHECK(fd > 2);
	CHECK_INT(strlen(facts.kernel), sizeof(facts.kernel) - 1);
	CHECK_INT(strlen(facts.agent_digest), sizeof(facts.agent_digest) - 1);
}

TEST(a_create_request_is_cut_after_its_strings)
{
	static struct {
		struct warden_request request;
		struct warden_create create;
	} packet;

	connect_pair();
	fill();
	CHECK_INT(warden_create_send(&warden, "bid", &create, &err), 0);
	ssize_t n = fd_recv(other, &packet, sizeof(packet), NULL, 0, NULL);
	CHECK_INT(n, (ssize_t)(sizeof(struct warden_request) + length()));
	CHECK_INT(packet.request.ask, WARDEN_CREATE);
	CHECK_INT(warden_create_check(&packet.create, (size_t)n - sizeof(packet.request), &err), 0);
}

TEST(warden_event_takes_events_only)
{
	struct warden_reply event;

	connect_pair();
	CHECK_INT(warden_event(&warden, &event, &err), 0);
	CHECK_INT(event.event, WARDEN_EVENT_NONE);
	say((struct warden_reply){ .event = WARDEN_EVENT_MEMORY }, -1);
	CHECK_INT(warden_event(&warden, &event, &err), 0);
	CHECK_INT(event.event, WARDEN_EVENT_MEMORY);
	say((struct warden_reply){ .serial = 1, .event = WARDEN_EVENT_MEMORY }, -1);
	CHECK_INT(warden_event(&warden, &event, &err), 0);
	CHECK_INT(event.event, WARDEN_EVENT_NONE);
	say((struct warden_reply){ .event = WARDEN_EVENTS_ }, -1);
	CHECK_INT(warden_event(&warden, &event, &err), 0);
	CHECK_INT(event.event, WARDEN_EVENT_NONE);
}

TEST(warden_spawn_says_what_it_could_not_start)
{
	CHECK_INT(warden_spawn(&warden, "/proc/none/cay-warden", "/tmp", 1, &err), -ENOENT);
	CHECK_STR(err.text, "start '/proc/none/cay-warden': No such file or directory");
	CHECK_INT(warden.fd, -1);
	CHECK_INT(warden_spawn(&warden, "/bin/true", "/tmp", 1, &err), -EPIPE);
	CHECK_INT(warden.fd, -1);
	CHECK_INT(waitpid(-1, NULL, 0), -1); /* no child is left */
}
