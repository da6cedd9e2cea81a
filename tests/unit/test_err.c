/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include "base/auto.h"
#include "check.h"

#include <errno.h>

static struct err err;

TEST(err_errno_says_what_and_why)
{
	CHECK_INT(err_errno(&err, ENOENT, "open '%s'", "/x"), -ENOENT);
	CHECK_STR(err.text, "open '/x': No such file or directory");
	CHECK_INT(err.kind, ERR_SYSTEM);
	CHECK_INT(err.errnum, ENOENT);
}

TEST(err_errno_says_why_even_of_a_name_that_does_not_fit)
{
	char name[2 * sizeof(err.text)];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	(void)err_errno(&err, ENOENT, "open '%s'", name);
	CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
	CHECK(strstr(err.text, "xxx: No such file or directory") != NULL);
}

TEST(err_errno_of_nothing_is_still_a_failure)
{
	CHECK_INT(err_errno(&err, 0, "x"), -EIO);
	CHECK_INT(err_errno(&err, -5, "x"), -EIO);
}

TEST(err_make_has_an_errno_for_every_kind)
{
	for (int kind = 0; kind < ERR_KINDS_; kind++) {
		CHECK(err_make(&err, (enum err_kind)kind, "x") < 0);
		CHECK_INT(err.kind, kind);
		CHECK(err_code(&err)[0] != '\0');
	}
	CHECK_INT(err_make(&err, ERR_LIMIT, "%u are running", 3u), -EDQUOT);
	CHECK_STR(err.text, "3 are running");
	CHECK_STR(err_code(&err), "limit");
	(void)err_make(&err, ERR_SETUP, "x");
	CHECK_STR(err_code(&err), "setup_failed");
}

TEST(err_while_puts_what_we_did_in_front)
{
	(void)err_errno(&err, EACCES, "open '/x'");
	CHECK_INT(err_while(&err, "start %d", 7), -EACCES);
	CHECK_STR(err.text, "start 7: open '/x': Permission denied");
	CHECK_INT(err.kind, ERR_SYSTEM);
}

TEST(err_keeps_the_cause_when_both_do_not_fit)
{
	char longer[sizeof(err.text) * 2];
	size_t room = sizeof(err.text) - sizeof("the cause: ");

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	(void)err_make(&err, ERR_INVALID, "the cause");
	CHECK_INT(err_while(&err, "%s", longer), -EINVAL);
	CHECK_STR(err.text, "the cause");
	CHECK_INT(err_while(&err, "%.*s", (int)room + 1, longer), -EINVAL);
	CHECK_STR(err.text, "the cause");
	CHECK_INT(err_while(&err, "%.*s", (int)room, longer), -EINVAL);
	CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
	CHECK_STR(err.text + room, ": the cause");

	(void)err_errno(&err, EPERM, "%s", longer);
	CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
}

TEST(err_sanitize_makes_any_bytes_an_err)
{
	memset(&err, 0xff, sizeof(err));
	err_sanitize(&err);
	CHECK_INT(err.kind, ERR_PROTOCOL);
	CHECK_INT(err.errnum, EPROTO);
	CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
	CHECK_STR(err_code(&err), "protocol");
}

TEST(err_sanitize_leaves_no_control_character)
{
	err = (struct err){ .kind = ERR_LIMIT,
			    .errnum = 4096,
			    .text = "a\033[0m\n\t\177b\xc3\xa9" };
	err_sanitize(&err);
	CHECK_STR(err.text, "a?[0m???b\xc3\xa9");
	CHECK_INT(err.errnum, EDQUOT);
	err = (struct err){ .kind = ERR_KINDS_, .errnum = 4095 };
	err_sanitize(&err);
	CHECK_INT(err.kind, ERR_PROTOCOL);
	CHECK_INT(err.errnum, 4095);
}

TEST(err_sanitize_leaves_a_good_err_alone)
{
	struct err before;

	(void)err_errno(&err, ENOSPC, "write '%s'", "x");
	before = err;
	err_sanitize(&err);
	CHECK_INT(memcmp(&before, &err, sizeof(err)), 0);
}
