/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/agent.h"

#include "base/auto.h"
#include "check.h"

#include <errno.h>

static uint8_t payload[FRAME_PAYLOAD_MAX];
static struct agent_message message;
static struct err err;

static int decode(uint16_t type, uint32_t channel, const struct pack *pack)
{
	struct frame frame = {
		.len = (uint32_t)pack->len, .type = type, .channel = channel, .payload = payload
	};

	CHECK(!pack->bad);
	return agent_decode(&frame, &message, &err);
}

static struct pack start(void)
{
	return (struct pack){ .data = payload, .size = sizeof(payload) };
}

TEST(decode_takes_a_hello_of_this_version_only)
{
	struct pack pack = start();

	pack_u32(&pack, AGENT_WIRE_VERSION);
	pack_u32(&pack, EACCES);
	pack_u32(&pack, 1);
	CHECK_INT(decode(AGENT_HELLO, 0, &pack), 0);
	CHECK_INT(message.hello.canary_errno, EACCES);
	CHECK_INT(decode(AGENT_HELLO, 1, &pack), -EPROTO);
	payload[0]++;
	CHECK_INT(decode(AGENT_HELLO, 0, &pack), -EPROTO);
}

TEST(decode_refuses_unknown_types_channels_and_lengths)
{
	struct pack pack = start();

	CHECK_INT(decode(0, 0, &pack), -EPROTO);
	CHECK_INT(decode(AGENT_EXEC, 1, &pack), -EPROTO);
	CHECK_INT(decode(13, 1, &pack), -EPROTO);
	CHECK_INT(decode(65535, 1, &pack), -EPROTO);
	CHECK_INT(decode(AGENT_PONG, 0, &pack), 0);
	CHECK_INT(decode(AGENT_STDOUT, AGENT_CHANNELS, &pack), 0);
	CHECK_INT(decode(AGENT_STDOUT, AGENT_CHANNELS + 1, &pack), -EPROTO);
	CHECK_INT(decode(AGENT_STDOUT, 0, &pack), -EPROTO);
	pack_u32(&pack, 1);
	CHECK_INT(decode(AGENT_PONG, 0, &pack), -EPROTO);
	CHECK_INT(decode(AGENT_STARTED, 1, &pack), 0);
	pack_bytes(&pack, "x", 1);
	CHECK_INT(decode(AGENT_STARTED, 1, &pack), -EPROTO);
}

TEST(decode_bounds_an_exit)
{
	for (uint32_t signaled = 0; signaled < 3; signaled++) {
		struct pack pack = start();
		pack_u32(&pack, signaled);
		pack_u32(&pack, 255);
		for (int i = 0; i < 3; i++)
			pack_u64(&pack, UINT64_MAX);
		CHECK_INT(decode(AGENT_EXIT, 1, &pack), signaled < 2 ? 0 : -EPROTO);
		payload[5] = 1; /* 511 */
		CHECK_INT(decode(AGENT_EXIT, 1, &pack), -EPROTO);
	}
}

TEST(decode_makes_a_failure_printable)
{
	struct pack pack = start();

	pack_u32(&pack, 12345);
	pack_u32(&pack, 0xffffffff);
	pack_text(&pack, "a\033[31mb\nc");
	CHECK_INT(decode(AGENT_FAILED, 3, &pack), 0);
	CHECK_INT(message.failed.kind, ERR_PROTOCOL);
	CHECK(message.failed.errnum > 0);
	CHECK_STR(message.failed.text, "a?[31mb?c");

	char longer[sizeof(message.failed.text) + 1];
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	pack = start();
	pack_u32(&pack, ERR_SYSTEM);
	pack_u32(&pack, EIO);
	pack_text(&pack, longer);
	CHECK_INT(decode(AGENT_FAILED, 3, &pack), -EPROTO);
}

TEST(decode_counts_denied_pairs)
{
	struct pack pack = start();

	pack_u32(&pack, 2);
	pack_u64(&pack, 1);
	CHECK_INT(decode(AGENT_DENIED, 0, &pack), -EPROTO);
	pack_u64(&pack, 2);
	CHECK_INT(decode(AGENT_DENIED, 0, &pack), 0);
	CHECK_INT(message.denied.count, 2);
	pack = start();
	pack_u32(&pack, 0x20000001); /* times 8 is 8, in 32 bits */
	pack_u64(&pack, 1);
	CHECK_INT(decode(AGENT_DENIED, 0, &pack), -EPROTO);
}

static int decode_path(const char *path)
{
	struct pack pack = start();

	pack_u32(&pack, 'f');
	pack_u64(&pack, 10);
	pack_u32(&pack, 0644);
	pack_u64(&pack, 1);
	pack_text(&pack, path);
	return decode(AGENT_ENTRY, 1, &pack);
}

TEST(decode_refuses_a_path_that_leads_elsewhere)
{
	static const char *const bad[] = { "/",    "/a",   "a/",     "a//b", ".",   "..",
					   "a/..", "../a", "a/../b", "./a",  "a/.", "//" };
	static const char *const good[] = { "", "a", "a/b", "...", ".a", "a/..b", "\xff\n" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(decode_path(bad[i]), -EPROTO);
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK_INT(decode_path(good[i]), 0);
	CHECK_INT(message.entry.path_len, 2);
}

TEST(decode_bounds_a_file_and_an_entry)
{
	struct pack pack = start();

	pack_u64(&pack, UINT64_MAX);
	pack_u32(&pack, 0644);
	CHECK_INT(decode(AGENT_FILE, 1, &pack), -EPROTO);
	pack = start();
	pack_u64(&pack, 1);
	pack_u32(&pack, 0100644);
	CHECK_INT(decode(AGENT_FILE, 1, &pack), -EPROTO);
	CHECK_INT(decode_path("x"), 0);
	payload[0] = 'x';
	struct pack entry = { .data = payload, .size = sizeof(payload), .len = 29 };
	CHECK_INT(decode(AGENT_ENTRY, 1, &entry), -EPROTO);
}

TEST(pack_exec_refuses_what_the_wire_cannot_carry)
{
	static char huge[FRAME_PAYLOAD_MAX];
	memset(huge, 'x', sizeof(huge) - 1);
	const char *argv[] = { "a", huge, NULL };
	struct agent_exec exec = { .argv = argv };
	struct pack pack = start();

	CHECK_INT(agent_pack_exec(&pack, &exec, &err), -EDQUOT);
	CHECK_INT(err.kind, ERR_LIMIT);
	huge[1000] = '\0';
	pack = start();
	CHECK_INT(agent_pack_exec(&pack, &exec, &err), 0);
}

TEST(pack_exec_refuses_too_many_arguments)
{
	static const char *argv[AGENT_ARGS_MAX + 2];
	struct agent_exec exec = { .argv = argv };
	struct pack pack = start();

	for (int i = 0; i <= AGENT_ARGS_MAX; i++)
		argv[i] = "";
	CHECK_INT(agent_pack_exec(&pack, &exec, &err), -EDQUOT);
	argv[AGENT_ARGS_MAX] = NULL;
	pack = start();
	CHECK_INT(agent_pack_exec(&pack, &exec, &err), 0);
}
