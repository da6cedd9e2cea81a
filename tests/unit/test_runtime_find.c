/* SPDX-License-Identifier: Apache-2.0
 *
 * A host of our own: interpreters are scripts that answer like Python and count how often they
 * are asked. */
#include "base/auto.h"
#include "base/err.h"
#include "base/path.h"
#include "check.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

static char world[64];
static struct err err;
static struct runtime_plan plan;

static char *at(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *at(const char *fmt, ...)
{
	static char paths[4][PATH_MAX];
	static unsigned turn;
	char *path = paths[turn++ % 4];
	va_list args;

	va_start(args, fmt);
	int len = snprintf(path, PATH_MAX, "%s/", world);
	vsnprintf(path + len, (size_t)(PATH_MAX - len), fmt, args);
	va_end(args);
	return path;
}

static void put(const char *path, mode_t mode, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void make_dirs(const char *relative)
{
	auto_close int fd = open(world, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(path_make_dirs(fd, relative, 0755) == 0);
}

static void add_python(const char *version, const char *extra)
{
	char dir[128], script[2048];

	snprintf(dir, sizeof(dir), "home/.pyenv/versions/%s/bin", version);
	make_dirs(dir);
	snprintf(script, sizeof(script),
		 "#!/bin/sh\n"
		 "echo %s >>%s/asked\n"
		 "p=%s/home/.pyenv/versions/%s\n"
		 "echo warning >&2\n"
		 "echo cay: version = %s\n"
		 "echo cay: implementation = cpython\n"
		 "echo cay: exe = $p/bin/python3\n"
		 "echo cay: prefix = $p\n"
		 "echo cay: site = $p/lib/python/site-packages\n"
		 "echo cay: shared = yes\n%s",
		 version, world, world, version, version, extra);
	put(at("%s/python3", dir), 0755, script);
}

static size_t times_asked(void)
{
	char text[4096] = "";
	auto_close int fd = open(at("asked"), O_RDONLY | O_CLOEXEC);
	size_t lines = 0;

	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	for (ssize_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	return lines;
}

static void make_world(void)
{
	snprintf(world, sizeof(world), "/tmp/cay-world-XXXXXX");
	CHECK(mkdtemp(world) != NULL);
	CHECK_INT(chmod(world, 0755), 0);
	make_dirs("manifests");
	make_dirs("state");
	make_dirs("home/.pyenv/versions");
	put(at("manifests/python.manifest"), 0644,
	    "name = python\ntitle = Python\naliases = py\nextensions = .py\nshebangs = python\n"
	    "probe = python\ncommands = python3\nsearch = ~/.pyenv/versions/*/bin\noldest = 3.10\n"
	    "newest = 3.13\npreferred = 3.12\nversion_parts = 2\nrun = {exe} {file}\n"
	    "env = N={cpus}\ncode_file = code.py\ncode_default = yes\nget = `get {version}` brings "
	    "it\n");
	setenv("HOME", at("home"), 1);
	unsetenv("PYENV_ROOT");
}

static void end_world(void)
{
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK_INT(path_remove_tree(tmp, world + strlen("/tmp/")), 0);
}

static int plan_for(const struct runtime_want *want)
{
	struct runtimes *set;

	CHECK_INT(runtimes_open(at("state"), at("manifests"), &set, &err), 0);
	int r = runtimes_plan(set, want, &plan, &err);
	runtimes_close(set);
	return r;
}

static int plan_lang(const char *lang)
{
	return plan_for(&(struct runtime_want){ .lang = lang, .cpus = 3 });
}

TEST(the_preferred_version_is_taken_and_moved_to_opt)
{
	make_world();
	add_python("3.13.1", "");
	add_python("3.12.4", "");
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_STR(plan.name, "python@3.12");
	CHECK_STR(plan.version, "3.12.4");
	CHECK_STR(plan.target, "/opt/cay/python@3.12");
	CHECK_STR(plan.prefix, at("home/.pyenv/versions/3.12.4"));
	CHECK_STR(plan.bin, "/opt/cay/python@3.12/bin");
	CHECK_STR(plan.run[0], "/opt/cay/python@3.12/bin/python3");
	CHECK_STR(plan.run[1], "{file}");
	CHECK(plan.run[2] == NULL && plan.compile[0] == NULL);
	CHECK_STR(plan.env[0], "LD_LIBRARY_PATH=/opt/cay/python@3.12/lib");
	CHECK_STR(plan.env[1], "N=3");
	CHECK_STR(plan.file_name, "code.py");
	CHECK_STR(plan.note, "");
	CHECK_STR(plan.layer, "");
	end_world();
}

TEST(without_the_preferred_version_the_newest_is_taken_and_it_says_so)
{
	make_world();
	add_python("3.10.9", "");
	add_python("3.11.2", "");
	CHECK_INT(plan_lang("python"), 0);
	CHECK_STR(plan.version, "3.11.2");
	CHECK_STR(plan.note, "Python 3.12 is not here; this runs with 3.11.2");
	CHECK_INT(plan_lang("python@3.10"), 0);
	CHECK_STR(plan.version, "3.10.9");
	CHECK_STR(plan.note, "");
	CHECK_INT(plan_lang("py@3.10.9"), 0);
	end_world();
}

TEST(each_interpreter_is_asked_once)
{
	make_world();
	add_python("3.11.2", "");
	add_python("3.12.4", "");
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_INT(times_asked(), 2);
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_INT(plan_lang("python@3.11"), 0);
	CHECK_INT(times_asked(), 2);
	end_world();
}

TEST(an_interpreter_that_changed_or_went_is_noticed)
{
	make_world();
	add_python("3.11.2", "");
	add_python("3.12.4", "");
	CHECK_INT(plan_lang(NULL), 0);
	add_python("3.12.4", "# changed in place\n");
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_INT(times_asked(), 3);
	unlink(at("home/.pyenv/versions/3.12.4/bin/python3"));
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_STR(plan.name, "python@3.11");
	CHECK_INT(times_asked(), 3);
	end_world();
}

TEST(a_new_interpreter_is_noticed)
{
	make_world();
	add_python("3.11.2", "");
	CHECK_INT(plan_lang(NULL), 0);
	add_python("3.12.4", "");
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_STR(plan.name, "python@3.12");
	CHECK_INT(times_asked(), 2);
	end_world();
}

TEST(a_broken_cache_is_ignored_and_written_anew)
{
	make_world();
	add_python("3.12.4", "");
	CHECK_INT(plan_lang(NULL), 0);
	put(at("state/runtimes.cache"), 0600, "cay-runtimes\t2\t1\t1\nexe\tnonsense\n");
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_INT(times_asked(), 2);
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_INT(times_asked(), 2);
	end_world();
}

TEST(a_cache_that_others_can_write_is_not_believed)
{
	make_world();
	add_python("3.12.4", "");
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_INT(chmod(at("state/runtimes.cache"), 0666), 0);
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_INT(times_asked(), 2);
	end_world();
}

TEST(a_state_directory_that_is_missing_costs_time_only)
{
	make_world();
	add_python("3.12.4", "");
	CHECK_INT(rmdir(at("state")), 0);
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_INT(times_asked(), 2);
	end_world();
}

TEST(what_is_missing_is_named_with_what_is_there_and_how_to_get_it)
{
	make_world();
	add_python("3.11.2", "");
	CHECK(plan_lang("python@3.10") < 0);
	CHECK_INT(err.kind, ERR_NOT_FOUND);
	CHECK_STR(err.text,
		  "python@3.10 is not on this machine (there: python@3.11 3.11.2); `get 3.10` "
		  "brings it");
	CHECK(plan_lang("python@3.9") < 0);
	CHECK_STR(err.text, "python@3.9 is not supported; 3.10 to 3.13 are");
	CHECK(plan_lang("cobol") < 0);
	CHECK_STR(err.text, "there is no language 'cobol'; there are python");
	CHECK(plan_lang("python@new") < 0);
	CHECK_INT(err.kind, ERR_INVALID);
	CHECK(plan_lang("python@") < 0);
	CHECK_INT(err.kind, ERR_INVALID);
	end_world();
}

TEST(the_language_is_told_by_first_line_then_by_extension)
{
	make_world();
	add_python("3.11.2", "");
	add_python("3.12.4", "");
	static const char head[] = "#!/usr/bin/env -S python3.11 -u -X dev\n";
	CHECK_INT(plan_for(&(struct runtime_want){
			  .file = "tool", .head = head, .head_len = strlen(head) }),
		  0);
	CHECK_STR(plan.name, "python@3.11");
	CHECK_STR(plan.run[1], "-u");
	CHECK_STR(plan.run[2], "-X");
	CHECK_STR(plan.run[3], "dev");
	CHECK_STR(plan.run[4], "{file}");
	CHECK_INT(plan_for(&(struct runtime_want){ .file = "dir/tool.py" }), 0);
	CHECK_STR(plan.name, "python@3.12");
	CHECK(plan_for(&(struct runtime_want){ .file = "tool" }) < 0);
	CHECK_INT(err.kind, ERR_INVALID);
	static const char perl[] = "#!/usr/bin/perl -w\n";
	CHECK(plan_for(&(struct runtime_want){
		      .file = "tool", .head = perl, .head_len = strlen(perl) }) < 0);
	CHECK(strstr(err.text, "'perl'") != NULL);
	end_world();
}

TEST(what_must_not_be_shown_is_passed_over)
{
	make_world();
	add_python("3.11.2", "");
	add_python("3.12.4", "");
	CHECK_INT(plan_lang(NULL), 0);
	put(at("home/.pyenv/versions/3.12.4/pip.conf"), 0600, "password");
	CHECK_INT(plan_lang(NULL), 0); /* though the cache knows it as good */
	CHECK_STR(plan.name, "python@3.11");
	CHECK(plan_lang("python@3.12") < 0);
	CHECK(strstr(err.text, "pip.conf") != NULL);
	end_world();
}

TEST(an_interpreter_that_needs_files_outside_is_passed_over)
{
	make_world();
	add_python("3.12.4", "echo cay: outside = /nix/store/x/libc.so\n");
	CHECK(plan_lang(NULL) < 0);
	CHECK(strstr(err.text, "/nix/store/x/libc.so") != NULL);
	end_world();
}

TEST(a_shim_leads_to_the_interpreter_behind_it)
{
	make_world();
	add_python("3.12.4", "");
	make_dirs("home/.pyenv/versions/shim/bin");
	put(at("home/.pyenv/versions/shim/bin/python3"), 0755,
	    "#!/bin/sh\nexec \"$HOME\"/.pyenv/versions/3.12.4/bin/python3\n");
	struct runtimes *set;
	const struct runtime *list;
	size_t count;
	CHECK_INT(runtimes_open(at("state"), at("manifests"), &set, &err), 0);
	CHECK_INT(runtimes_scan(set, &list, &count, &err), 0);
	CHECK_INT(count, 1);
	CHECK_STR(list[0].exe, at("home/.pyenv/versions/3.12.4/bin/python3"));
	CHECK(list[0].usable && list[0].is_default);
	runtimes_close(set);
	end_world();
}

TEST(a_layer_is_laid_over_when_its_link_is_good)
{
	static const char digest[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

	make_world();
	add_python("3.12.4", "");
	make_dirs("state/layers/python@3.12/"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
	CHECK_INT(symlink(digest, at("state/layers/python@3.12/data")), 0);
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_STR(plan.layer_digest, digest);
	CHECK_STR(plan.layer, at("state/layers/python@3.12/%s", digest));
	CHECK_INT(plan_for(&(struct runtime_want){ .no_layer = true }), 0);
	CHECK_STR(plan.layer, "");
	unlink(at("state/layers/python@3.12/data"));
	CHECK_INT(symlink("/etc", at("state/layers/python@3.12/data")), 0);
	CHECK_INT(plan_lang(NULL), 0);
	CHECK_STR(plan.layer, "");
	end_world();
}

TEST(an_image_brings_its_own_interpreters)
{
	make_world();
	CHECK_INT(plan_for(&(struct runtime_want){ .file = "x.py", .image = true }), 0);
	CHECK_STR(plan.run[0], "python3");
	CHECK_STR(plan.name, "python");
	CHECK_STR(plan.prefix, "");
	CHECK_STR(plan.target, "");
	end_world();
}

TEST(argv_gets_the_file_in_its_place)
{
	const char *words[] = { "cc", "{file}", "-o", "x", NULL };
	const char *argv[RUNTIME_ARGS_MAX + 1];

	CHECK_INT(runtime_argv(words, "/workspace/{file}", argv), 4);
	CHECK_STR(argv[1], "/workspace/{file}");
	CHECK(argv[4] == NULL);
}
