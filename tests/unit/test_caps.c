/* SPDX-License-Identifier: Apache-2.0 */
#include "caps.h"

#include "warden_fixture.h"

#include <linux/securebits.h>
#include <sys/prctl.h>

/* The value of a line of /proc/self/status. */
static const char *status(const char *key)
{
	static char text[8192], value[64];
	char line[32];

	CHECK(fd_read_text_at(AT_FDCWD, "/proc/self/status", text, sizeof(text)) > 0);
	snprintf(line, sizeof(line), "\n%s:\t", key);
	const char *at = strstr(text, line);
	CHECK(at != NULL);
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(at + strlen(line), "\n"),
		 at + strlen(line));
	return value;
}

static void drop(void)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };

	enter_namespaces(0);
	CHECK(strcmp(status("CapEff"), "0000000000000000") != 0);
	CHECK_INT(caps_lock(&err), 0);
	CHECK_INT(caps_drop(&err), 0);
	CHECK_INT(caps_no_new_privs(&err), 0);
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		CHECK_STR(status(sets[i]), "0000000000000000");
	CHECK_STR(status("NoNewPrivs"), "1");
	CHECK_INT(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), SECURE_ALL_BITS | SECURE_ALL_LOCKS);
	/* And the rights are really gone. */
	CHECK_INT(sys_mount("tmpfs", "/tmp", "tmpfs", 0, NULL), -1);
	CHECK_INT(errno, EPERM);
	CHECK(caps_lock(&err) < 0);
}

TEST(caps_drop_empties_every_set_for_good)
{
	in_child(drop);
}

static void exec_again(void)
{
	enter_namespaces(0);
	CHECK_INT(caps_lock(&err), 0);
	CHECK_INT(caps_drop(&err), 0);
	/* Uid 0 of this namespace: without the locks exec would give everything back. */
	execl("/bin/sh", "sh", "-c", "grep -q 'CapEff:.0000000000000000' /proc/self/status", NULL);
	_exit(1);
}

TEST(caps_do_not_come_back_with_exec)
{
	in_child(exec_again);
}

static void change_uid(void)
{
	enter_namespaces(0);
	CHECK_INT(caps_lock(&err), 0);
	/* KEEP_CAPS and NO_SETUID_FIXUP are locked on: what drops them is caps_drop alone. */
	CHECK_INT(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0), -1);
	CHECK_INT(errno, EPERM);
}

TEST(caps_lock_cannot_be_undone)
{
	in_child(change_uid);
}

static void drop_unprivileged(void)
{
	if (is_root() && (setgid(65534) < 0 || setuid(65534) < 0))
		SKIP("cannot become nobody");
	CHECK_INT(caps_lock(&err), -EPERM);
	CHECK_INT(caps_drop(&err), -EPERM);
}

TEST(caps_without_the_right_to_drop_them_are_an_error)
{
	in_child(drop_unprivileged);
}
