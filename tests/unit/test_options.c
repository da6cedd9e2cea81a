/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "base/auto.h"
#include "base/err.h"
#include "check.h"
#include "say.h"

#include <errno.h>

struct mine {
	bool json, quiet, verbose;
	const char *code;
	uint64_t memory, timeout, pids, cpus;
	struct text_list env;
};

static const struct option options[] = {
	{ "json", 0, OPTION_FLAG, offsetof(struct mine, json), NULL, "one document" },
	{ "quiet", 'q', OPTION_FLAG, offsetof(struct mine, quiet), NULL, "say less" },
	{ "verbose", 'v', OPTION_FLAG, offsetof(struct mine, verbose), NULL, "say more" },
	{ "code", 'c', OPTION_TEXT, offsetof(struct mine, code), "CODE", "run this" },
	{ "env", 'e', OPTION_LIST, offsetof(struct mine, env), "KEY=VALUE", "set a variable" },
	{ "memory", 0, OPTION_SIZE, offsetof(struct mine, memory), "SIZE", "memory" },
	{ "timeout", 0, OPTION_DURATION, offsetof(struct mine, timeout), "TIME", "time" },
	{ "pids", 0, OPTION_NUMBER, offsetof(struct mine, pids), "N", "processes" },
	{ "cpus", 0, OPTION_MILLIS, offsetof(struct mine, cpus), "N", "cores" },
	{ 0 },
};
static const struct option_set set = { .usage = "cay thing", .about = "It.", .options = options };

static struct mine got;
static struct operands operands;
static struct err err;

#define PARSE(...)                                                                                 \
	({                                                                                         \
		static char *argv_[] = { "thing", __VA_ARGS__, NULL };                             \
		got = (struct mine){ 0 };                                                          \
		options_parse(&set, (int)ARRAY_LEN(argv_) - 1, argv_, &got, &operands, &err);      \
	})

TEST(options_reads_every_kind)
{
	CHECK_INT(PARSE("--json", "-qv", "--memory", "512M", "--timeout=1.5s", "--pids", "7",
			"--cpus", "0.5", "-cx=1", "-e", "A=1", "--env=B=2", "-eC=3"),
		  0);
	CHECK(got.json && got.quiet && got.verbose);
	CHECK_INT(got.memory, 512 << 20);
	CHECK_INT(got.timeout, 1500);
	CHECK_INT(got.pids, 7);
	CHECK_INT(got.cpus, 500);
	CHECK_STR(got.code, "x=1");
	CHECK_INT(got.env.n, 3);
	CHECK_STR(got.env.items[0], "A=1");
	CHECK_STR(got.env.items[1], "B=2");
	CHECK_STR(got.env.items[2], "C=3");
	text_list_finish(&got.env);
}

TEST(options_may_stand_after_operands)
{
	CHECK_INT(PARSE("script.py", "--json", "data"), 0);
	CHECK(got.json);
	CHECK_INT(operands.n, 2);
	CHECK_STR(operands.items[0], "script.py");
	CHECK_STR(operands.items[1], "data");
	CHECK(!operands.has_dashes);
	CHECK_INT(operands.n_before_dashes, 2);
}

TEST(options_end_at_dashes)
{
	CHECK_INT(PARSE("-q", "one", "--", "--json", "-x", "--"), 0);
	CHECK(!got.json && got.quiet && operands.has_dashes);
	CHECK_INT(operands.n_before_dashes, 1);
	CHECK_INT(operands.n, 4);
	CHECK_STR(operands.items[1], "--json");
	CHECK_STR(operands.items[3], "--");
}

TEST(options_a_single_dash_is_an_operand)
{
	CHECK_INT(PARSE("-"), 0);
	CHECK_INT(operands.n, 1);
}

TEST(options_name_an_unknown_flag_and_suggest_the_nearest)
{
	CHECK_INT(PARSE("--memroy", "1G"), -EINVAL);
	CHECK_STR(err.text, "unknown flag '--memroy'; did you mean '--memory'?");
	CHECK_INT(PARSE("--tiemout=3"), -EINVAL);
	CHECK_STR(err.text, "unknown flag '--tiemout'; did you mean '--timeout'?");
	CHECK_INT(PARSE("--frobnicate"), -EINVAL);
	CHECK(strstr(err.text, "unknown flag '--frobnicate'; `cay thing --help`") != NULL);
	CHECK_INT(PARSE("-qx"), -EINVAL);
	CHECK(strstr(err.text, "'-qx'") != NULL);
}

TEST(options_unknown_flags_cannot_reach_the_terminal)
{
	char said[sizeof(err.text) * 4];

	/* Escaped once, where it is said. */
	CHECK_INT(PARSE("--\x1b[31m"), -EINVAL);
	say_escape(said, sizeof(said), err.text, strlen(err.text));
	CHECK(strchr(said, '\x1b') == NULL);
	CHECK(strstr(said, "'--\\x1b[31m'") != NULL);
}

TEST(options_say_what_value_is_missing_or_wrong)
{
	CHECK_INT(PARSE("--memory"), -EINVAL);
	CHECK_STR(err.text, "the flag '--memory' needs a value: --memory SIZE");
	CHECK_INT(PARSE("--json=yes"), -EINVAL);
	CHECK_STR(err.text, "the flag '--json' takes no value");
	CHECK_INT(PARSE("--pids", "none"), -EINVAL);
	CHECK(strstr(err.text, "--pids 'none' is not a number") != NULL);
}

TEST(options_notice_json_behind_a_mistake)
{
	CHECK_INT(PARSE("--frobnicate", "--json"), -EINVAL);
	CHECK(got.json);
	CHECK_INT(PARSE("--frobnicate", "--", "--json"), -EINVAL);
	CHECK(!got.json);
}

static void check_escape(const char *bytes, size_t len, const char *want)
{
	char text[64];

	say_escape(text, sizeof(text), bytes, len);
	CHECK_STR(text, want);
}

TEST(say_escapes_what_could_move_the_cursor)
{
	check_escape("a\nb\tc", 5, "a\\nb\\tc");
	check_escape("\x1b]0;x\x07", 6, "\\x1b]0;x\\x07");
	check_escape("\\x1b", 4, "\\\\x1b");
	check_escape("\0\x7f", 2, "\\x00\\x7f");
	check_escape("gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f");
	check_escape("\xff\xc3", 2, "\\xff\\xc3");
	check_escape("\xc2\x9b"
		     "31m",
		     5, "\\xc2\\x9b31m");
	check_escape("\xe2\x80\xae"
		     "x",
		     4, "\\xe2\\x80\\xaex");
	check_escape("\xc0\xaf", 2, "\\xc0\\xaf");
	check_escape("\xed\xa0\x80", 3, "\\xed\\xa0\\x80");
}

TEST(say_escape_cuts_and_says_so)
{
	char text[8];

	say_escape(text, sizeof(text), "abcdefghij", 10);
	CHECK_STR(text, "abcd...");
}
