/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quantity.h"

#include "base/auto.h"
#include "base/err.h"
#include "check.h"

#include <errno.h>

static uint64_t size(const char *text)
{
	uint64_t n = 0;
	struct err err;

	return quantity_size(text, "--memory", &n, &err) == 0 ? n : 0;
}

static uint64_t duration(const char *text)
{
	uint64_t n = 0;
	struct err err;

	return quantity_duration(text, "--timeout", &n, &err) == 0 ? n : 0;
}

TEST(quantity_reads_sizes)
{
	CHECK_INT(size("4096"), 4096);
	CHECK_INT(size("100k"), 102400);
	CHECK_INT(size("512M"), 512ll << 20);
	CHECK_INT(size("512m"), 512ll << 20);
	CHECK_INT(size("1.5G"), 3ll << 29);
	CHECK_INT(size("1GiB"), 1ll << 30);
	CHECK_INT(size("0.5k"), 512);
	CHECK_INT(size("1T"), 1ll << 40);
}

TEST(quantity_reads_durations)
{
	CHECK_INT(duration("30s"), 30000);
	CHECK_INT(duration("30"), 30000);
	CHECK_INT(duration("1.5s"), 1500);
	CHECK_INT(duration("500ms"), 500);
	CHECK_INT(duration("5m"), 300000);
	CHECK_INT(duration("2h"), 7200000);
	CHECK_INT(duration("0.001"), 1);
	CHECK_INT(duration("1.0000000000000000000001s"), 1000);
}

TEST(quantity_reads_cpus_in_thousandths)
{
	uint64_t n;
	struct err err;

	CHECK_INT(quantity_millis("0.5", "--cpus", &n, &err), 0);
	CHECK_INT(n, 500);
	CHECK_INT(quantity_millis("2", "--cpus", &n, &err), 0);
	CHECK_INT(n, 2000);
}

TEST(quantity_refuses_what_is_not_a_positive_number)
{
	static const char *const bad[] = {
		"",
		"0",
		"0M",
		"0.0",
		"-1",
		"-5M",
		"nan",
		"inf",
		"NaN",
		"1e9",
		"M",
		".",
		".M",
		"1.",
		"1..5",
		"1.5.5",
		" 1",
		"1 ",
		"1M ",
		"512MM",
		"0x10",
		"1,5G",
		"+5",
		"infinity",
		"12\n",
		"1M\x1b",
		"99999999999999999999999",
		"999999999999999999999999999999999999T",
		"9007199254740993",
		"0.0000000000000001",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (size(bad[i]) != 0)
			END(EXIT_FAILURE, "size '%s' was taken", bad[i]);
		if (duration(bad[i]) != 0)
			END(EXIT_FAILURE, "duration '%s' was taken", bad[i]);
	}
}

TEST(quantity_names_the_value_and_the_right_form)
{
	uint64_t n = 7;
	struct err err;

	CHECK_INT(quantity_size("lots", "--memory", &n, &err), -EINVAL);
	CHECK_STR(err.text,
		  "--memory 'lots' is not a number; give a size above zero, such as 512M or 1.5G");
	CHECK_INT(n, 7);
	CHECK_INT(quantity_number("1.5", "--pids", &n, &err), -EINVAL);
	CHECK_STR(err.text,
		  "--pids '1.5' is not a whole number; give a whole number above zero, such as 64");
	CHECK_INT(quantity_duration("-3s", "--timeout", &n, &err), -EINVAL);
	CHECK(strstr(err.text, "'-3s' is negative") != NULL);
	CHECK_INT(quantity_duration("3 weeks", "--timeout", &n, &err), -EINVAL);
	CHECK(strstr(err.text, "has a unit that does not exist") != NULL);
}

TEST(quantity_names_a_bound_that_is_true)
{
	uint64_t n = 7;
	struct err err;

	CHECK_INT(quantity_size("8193T", "--memory", &n, &err), -ERANGE);
	CHECK_STR(err.text, "--memory '8193T' is too large; give at most 8192T");
	CHECK_INT(quantity_size("8192T", "--memory", &n, &err), 0);
	CHECK_INT(quantity_duration("104249992d", "--timeout", &n, &err), -ERANGE);
	CHECK_INT(quantity_duration("104249991d", "--timeout", &n, &err), 0);
	CHECK_INT(quantity_duration("0.1ms", "--timeout", &n, &err), -EDOM);
	CHECK_STR(err.text, "--timeout '0.1ms' is too small; give at least 1ms");
	CHECK_INT(quantity_number("9007199254740993", "-n", &n, &err), -ERANGE);
	CHECK_INT(quantity_number("9007199254740992", "-n", &n, &err), 0);
	CHECK_INT(quantity_millis("9007199254740", "--cpus", &n, &err), 0);
	CHECK_INT(quantity_millis("9007199254741", "--cpus", &n, &err), -ERANGE);
}

TEST(quantity_shows_sizes_and_durations)
{
	char text[QUANTITY_TEXT];

	CHECK_STR(quantity_show_size(text, 100), "100 bytes");
	CHECK_STR(quantity_show_size(text, 1536), "1.5 KiB");
	CHECK_STR(quantity_show_size(text, 1ull << 30), "1024 MiB");
	CHECK_STR(quantity_show_size(text, 64ull << 30), "64 GiB");
	CHECK_STR(quantity_show_duration(text, 250), "250 ms");
	CHECK_STR(quantity_show_duration(text, 1500), "1.5 s");
	CHECK_STR(quantity_show_duration(text, 120000), "120 s");
	CHECK_STR(quantity_show_size(text, UINT64_MAX), "17179869183.9 GiB");
}
