/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "check.h"
#include "runtime/manifest.h"
#include "runtime/prefix.h"
#include "runtime/probe.h"
#include "runtime/shebang.h"
#include "runtime/version.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct err err;

TEST(versions_are_compared_number_by_number)
{
	CHECK(version_compare("3.9.18", "3.12") < 0);
	CHECK(version_compare("3.12.10", "3.12.9") > 0);
	CHECK_INT(version_compare("3.12", "3.12.0"), 0);
	CHECK_INT(version_compare("x", "y"), 0);
}

TEST(a_short_version_stands_for_all_that_begin_with_it)
{
	CHECK(version_matches("3.12.1", "3.12"));
	CHECK(version_matches("3.12.1", "3"));
	CHECK(version_matches("3.12.1", ""));
	CHECK(!version_matches("3.12.1", "3.1"));
	CHECK(!version_matches("3.12", "3.12.1"));
	CHECK(version_is_between("3.13.7", "3.10", "3.13"));
	CHECK(!version_is_between("3.14.0", "3.10", "3.13"));
	CHECK(!version_is_between("3.9.9", "3.10", "3.13"));
	CHECK(version_is_between("22.6.0", "22.6", ""));
}

TEST(versions_that_are_none_are_refused)
{
	static const char *const bad[] = { "",     "3.",      ".3",
					   "3..1", "3x",      "v3",
					   "-1",   "3.12/..", "1.2.3.4.5.6.7.8.9.10.11.12" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!version_is_valid(bad[i]));
	CHECK(version_is_valid("3"));
	CHECK(version_is_valid("3.12.1"));
}

TEST(a_first_line_tells_interpreter_version_and_options)
{
	static const struct {
		const char *line, *name, *version, *options;
	} good[] = {
		{ "#!/usr/bin/env python3.11\nprint()", "python", "3.11", "" },
		{ "#!/usr/bin/python3 -u\r\n", "python", "3", "-u" },
		{ "#! /bin/sh", "sh", "", "" },
		{ "#!/usr/bin/env -S A=1 node --no-warnings x\n", "node", "", "--no-warnings x" },
		{ "#!/opt/my perl\n", "my", "", "perl" },
		{ "#!/bin/bash -e\n", "bash", "", "-e" },
		{ "#!/x/123\n", "123", "", "" },
	};
	struct shebang s;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK(shebang_parse(good[i].line, strlen(good[i].line), &s));
		CHECK_STR(s.name, good[i].name);
		CHECK_STR(s.version, good[i].version);
		CHECK_STR(s.options, good[i].options);
	}
	CHECK(!shebang_parse("#!", 2, &s));
	CHECK(!shebang_parse("#!  \n", 5, &s));
	CHECK(!shebang_parse("#!/usr/bin/env\n", 15, &s));
	CHECK(!shebang_parse("# !/bin/sh", 10, &s));
	CHECK(!shebang_parse("#!/bin/\0sh", 10, &s));
}

TEST(a_first_line_without_an_end_is_refused)
{
	char line[400];
	struct shebang s;

	memset(line, 'a', sizeof(line));
	memcpy(line, "#!/", 3);
	CHECK(!shebang_parse(line, sizeof(line), &s));
}

TEST(an_answer_is_read_among_other_lines)
{
	static const char text[] = "pyenv: rehashing\ncay: version = 3.12.1\nnoise = x\n"
				   "cay: prefix = /opt/p\ncay: shared = yes\n";
	struct probe probe;

	CHECK_INT(probe_parse(text, strlen(text), &probe, &err), 0);
	CHECK_STR(probe.version, "3.12.1");
	CHECK_STR(probe.prefix, "/opt/p");
	CHECK(probe.shared);
	CHECK_STR(probe.exe, "");
}

TEST(an_answer_that_lies_about_paths_is_refused)
{
	static const char *const bad[] = {
		"cay: version = 3.12.1\ncay: prefix = etc\n",
		"cay: version = 3.12.1\ncay: exe = /opt/../etc/x\n",
		"cay: version = ../../x\n",
		"cay: prefix = /opt/x\n",
		"cay: version = 3.12.1\ncay: what = 1\n",
		"",
	};
	struct probe probe;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(probe_parse(bad[i], strlen(bad[i]), &probe, &err) < 0);
}

TEST(a_program_that_hangs_is_given_up_and_killed)
{
	struct probe probe;
	char dir[] = "/tmp/cay-probe-XXXXXX", path[64];

	CHECK(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/hang", dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	dprintf(fd, "#!/bin/sh\nsleep 1000 &\necho $! >%s/pid\nwait\n", dir);
	close(fd);
	CHECK(probe_ask("version", path, &probe, &err) < 0);
	CHECK_INT(err.kind, ERR_TIMEOUT);

	snprintf(path, sizeof(path), "%s/pid", dir);
	FILE *file = fopen(path, "r");
	int pid = 0;
	CHECK(file && fscanf(file, "%d", &pid) == 1);
	fclose(file);
	usleep(100000); /* its new parent reaps it */
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	char target[64];
	CHECK(readlink(path, target, sizeof(target)) < 0); /* gone, or a zombie */
	snprintf(path, sizeof(path), "%s/pid", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/hang", dir);
	unlink(path);
	CHECK_INT(rmdir(dir), 0);
}

TEST(a_program_that_fails_or_is_missing_is_told)
{
	struct probe probe;

	CHECK(probe_ask("version", "/bin/false", &probe, &err) < 0);
	CHECK(strstr(err.text, "ended with 1") != NULL);
	CHECK(probe_ask("version", "/nonexistent", &probe, &err) < 0);
	CHECK(probe_ask("nonsense", "/bin/true", &probe, &err) < 0);
	CHECK_INT(probe_ask("version", "/bin/bash", &probe, &err), 0);
	CHECK(version_compare(probe.version, "3") > 0);
}

TEST(a_prefix_that_is_a_home_is_not_shown)
{
	static const char *const bad[] = { "/home/ann",        "/root",  "/opt", "/",
					   "/home/ann/.local", "/srv/me" };
	char exe[128];

	setenv("HOME", "/srv/me/home", 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(exe, sizeof(exe), "%s/bin/python3", strcmp(bad[i], "/") ? bad[i] : "");
		CHECK(prefix_check(bad[i], exe, "/var/lib/cay", &err) < 0);
		CHECK(strstr(err.text, "no directory of its own") != NULL);
	}
	CHECK(prefix_check("/data/x", "/data/x/bin/python3", "/data/x/state", &err) < 0);
	CHECK(prefix_check("/data/x", "/data/y/bin/python3", NULL, &err) < 0);
	CHECK_INT(prefix_check("/usr/local", "/usr/local/bin/python3", NULL, &err), 0);
}

TEST(a_prefix_with_secrets_in_it_is_not_shown)
{
	char prefix[] = "/tmp/cay-prefix-XXXXXX", exe[64], secret[64];

	CHECK(mkdtemp(prefix) != NULL);
	CHECK_INT(chmod(prefix, 0755), 0);
	snprintf(exe, sizeof(exe), "%s/python3", prefix);
	snprintf(secret, sizeof(secret), "%s/pip.conf", prefix);
	close(open(exe, O_WRONLY | O_CREAT, 0755));
	CHECK_INT(prefix_check(prefix, exe, NULL, &err), 0);
	close(open(secret, O_WRONLY | O_CREAT, 0600));
	CHECK(prefix_check(prefix, exe, NULL, &err) < 0);
	CHECK(strstr(err.text, "pip.conf") != NULL);
	unlink(secret);
	unlink(exe);
	rmdir(prefix);
}

TEST(root_starts_nothing_that_another_user_owns)
{
	char dir[] = "/tmp/cay-owner-XXXXXX", exe[64];

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK(mkdtemp(dir) != NULL);
	snprintf(exe, sizeof(exe), "%s/python3", dir);
	close(open(exe, O_WRONLY | O_CREAT, 0755));
	CHECK_INT(prefix_check_startable(exe, &err), 0);
	CHECK_INT(chown(exe, 1000, 1000), 0);
	CHECK(prefix_check_startable(exe, &err) < 0);
	CHECK_INT(chown(exe, 0, 0), 0);
	CHECK_INT(chmod(dir, 0777), 0);
	CHECK(prefix_check_startable(exe, &err) < 0);
	unlink(exe);
	rmdir(dir);
}

TEST(the_manifests_that_we_ship_are_good)
{
	struct manifests manifests;

	CHECK_INT(manifests_read(RUNTIMES_DIR, &manifests, &err), 0);
	CHECK_STR(manifests_find(&manifests, "python3")->name, "python");
	CHECK_STR(manifests_find(&manifests, "TS")->name, "typescript");
	CHECK_STR(manifests_find_extension(&manifests, "a.b/x.mjs")->name, "node");
	CHECK_STR(manifests_find_extension(&manifests, "X.PY")->name, "python");
	CHECK(manifests_find_extension(&manifests, "a.py/x") == NULL);
	CHECK_STR(manifests_find_shebang(&manifests, "sh")->name, "bash");
	CHECK_STR(manifests_code_default(&manifests)->name, "python");
	const struct manifest *ts = manifests_find(&manifests, "ts");
	CHECK_STR(manifests_interpreter(&manifests, ts)->name, "node");
	manifests_finish(&manifests);
}
