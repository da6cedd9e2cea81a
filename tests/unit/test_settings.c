/* SPDX-License-Identifier: Apache-2.0 */
#include "base/settings.h"

#include "base/err.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

struct fields {
	char name[8];
	char env[16];
	bool on;
	uint64_t parts;
};

static const struct setting table[] = {
	{ "name", SETTING_TEXT, SETTING_FIELD(struct fields, name), 0, 0, NULL },
	{ "env", SETTING_LINES, SETTING_FIELD(struct fields, env), 0, 0, NULL },
	{ "on", SETTING_FLAG, SETTING_FIELD(struct fields, on), 0, 0, NULL },
	{ "parts", SETTING_NUMBER, SETTING_FIELD(struct fields, parts), 1, 9, NULL },
	{ 0 },
};

static struct fields fields;
static struct err err;

static int parse(const char *text)
{
	fields = (struct fields){ .name = "old", .parts = 7 };
	return settings_parse(text, strlen(text), table, &fields, &err);
}

TEST(settings_are_read_with_space_and_comments)
{
	CHECK_INT(parse("# hello\n\n  name =  a b \t\r\non=yes\nparts = 3\nenv = A=1\nenv=B"), 0);
	CHECK_STR(fields.name, "a b");
	CHECK_STR(fields.env, "A=1\nB\n");
	CHECK(fields.on);
	CHECK_INT(fields.parts, 3);
}

TEST(settings_keep_what_is_not_named)
{
	CHECK_INT(parse("on = no\n"), 0);
	CHECK_STR(fields.name, "old");
	CHECK_INT(fields.parts, 7);
}

TEST(settings_errors_name_the_line_and_the_key)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "\nnme = x", "line 2: there is no key 'nme'" },
		{ "name", "line 1 is not 'key = value'" },
		{ "= x", "line 1 is not 'key = value'" },
		{ "NAME = x", "line 1 is not 'key = value'" },
		{ "name =", "line 1: 'name' has no value" },
		{ "name = a\nname = b", "line 2: 'name' stands there twice" },
		{ "name = 12345678", "line 1: 'name' is longer than 7 bytes" },
		{ "env = 1234567\nenv = 1234567", "line 2: 'env' is longer than 15 bytes" },
		{ "on = maybe", "line 1: 'on' must be yes or no" },
		{ "parts = 0", "line 1: 'parts' must be a whole number from 1 to 9" },
		{ "parts = -1", "line 1: 'parts' must be a whole number from 1 to 9" },
		{ "parts = 99999999999999999999",
		  "line 1: 'parts' must be a whole number from 1 to 9" },
		{ "name = a\033b", "line 1 has a control character" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(parse(bad[i].text) < 0);
		CHECK_STR(err.text, bad[i].says);
	}
}

TEST(settings_fill_a_field_to_its_last_byte)
{
	CHECK_INT(parse("name = 1234567\nenv = 123456\nenv = 1234567"), 0);
	CHECK_STR(fields.name, "1234567");
	CHECK_STR(fields.env, "123456\n1234567\n");
}

TEST(settings_refuse_what_is_too_long)
{
	static char text[SETTINGS_FILE_MAX + 2];

	memset(text, '#', sizeof(text));
	CHECK(settings_parse(text, sizeof(text), table, &fields, &err) < 0);
	CHECK_INT(err.kind, ERR_LIMIT);
	CHECK(settings_parse(text, SETTINGS_LINE_MAX + 1, table, &fields, &err) < 0);
	CHECK_INT(settings_parse(text, SETTINGS_LINE_MAX, table, &fields, &err), 0);
}

TEST(settings_refuse_a_nul_byte)
{
	CHECK(settings_parse("name = a\0b", 10, table, &fields, &err) < 0);
}

TEST(settings_are_read_from_regular_files_only)
{
	char dir[] = "/tmp/cay-settings-XXXXXX";

	CHECK(mkdtemp(dir) != NULL);
	int fd = open(dir, O_RDONLY | O_DIRECTORY);
	CHECK_INT(mkfifoat(fd, "fifo", 0600), 0);
	CHECK_INT(settings_read_at(fd, "fifo", table, &fields, &err), -EINVAL);
	CHECK_INT(settings_read_at(fd, ".", table, &fields, &err), -EINVAL);
	CHECK_INT(settings_read_at(fd, "missing", table, &fields, &err), -ENOENT);
	CHECK_STR(err.text, "read 'missing': No such file or directory");

	int file = openat(fd, "good", O_WRONLY | O_CREAT, 0600);
	CHECK_INT(write(file, "parts = 4\n", 10), 10);
	CHECK_INT(settings_read_at(fd, "good", table, &fields, &err), 0);
	CHECK_INT(fields.parts, 4);
	CHECK_INT(write(file, "x\n", 2), 2);
	CHECK(settings_read_at(fd, "good", table, &fields, &err) < 0);
	CHECK_STR(err.text, "read 'good': line 2 is not 'key = value'");
	unlinkat(fd, "good", 0);
	unlinkat(fd, "fifo", 0);
	rmdir(dir);
}
