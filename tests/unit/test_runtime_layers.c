/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/path.h"
#include "check.h"
#include "runtime/build.h"
#include "runtime/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define ONE "1111111111111111111111111111111111111111111111111111111111111111"
#define TWO "2222222222222222222222222222222222222222222222222222222222222222"

static char state[64];
static struct err err;

static const struct runtime python = { .name = "python@3.12", .prefix = "/opt/py" };

static int make_state(void)
{
	snprintf(state, sizeof(state), "/tmp/cay-layers-XXXXXX");
	CHECK(mkdtemp(state) != NULL);
	int dir = layers_open_dir(state, "python@3.12", &err);
	CHECK(dir >= 0);
	return dir;
}

static void end_state(void)
{
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK_INT(path_remove_tree(tmp, state + strlen("/tmp/")), 0);
}

static int count_one(void *arg, const char *name, const char *link, const char *digest)
{
	(void)name, (void)link, (void)digest;
	++*(int *)arg;
	return 0;
}

static int count(void)
{
	int n = 0;

	CHECK_INT(layers_each(state, count_one, &n), 0);
	return n;
}

TEST(a_layer_is_found_by_its_link_and_replaced_at_once)
{
	char path[PATH_MAX], digest[LAYERS_DIGEST_SIZE];
	int dir = make_state();

	CHECK_INT(layers_find(state, &python, "data", path, digest), -ENOENT);
	CHECK_INT(mkdirat(dir, ONE, 0755), 0);
	CHECK_INT(mkdirat(dir, TWO, 0755), 0);
	CHECK_INT(layers_publish(dir, ONE, "data", &err), 0);
	CHECK_INT(layers_find(state, &python, "data", path, digest), 0);
	CHECK_STR(digest, ONE);
	CHECK_INT(layers_publish(dir, TWO, "data", &err), 0);
	CHECK_INT(layers_find(state, &python, "data", path, digest), 0);
	CHECK_STR(digest, TWO);
	CHECK_INT(count(), 1);
	end_state();
}

TEST(trees_that_no_link_names_are_swept)
{
	int dir = make_state();

	CHECK_INT(mkdirat(dir, ONE, 0755), 0);
	CHECK_INT(mkdirat(dir, TWO, 0755), 0);
	CHECK_INT(mkdirat(dir, ".build-" TWO, 0755), 0);
	CHECK_INT(mkdirat(dir, "mine", 0755), 0);
	CHECK_INT(layers_publish(dir, ONE, "data", &err), 0);
	layers_sweep(dir);
	CHECK_INT(faccessat(dir, ONE, F_OK, 0), 0);
	CHECK_INT(faccessat(dir, "mine", F_OK, 0), 0);
	CHECK_INT(faccessat(dir, TWO, F_OK, 0), -1);
	CHECK_INT(faccessat(dir, ".build-" TWO, F_OK, 0), -1);
	end_state();
}

TEST(a_tree_with_two_links_goes_with_the_last)
{
	int dir = make_state();

	CHECK_INT(mkdirat(dir, ONE, 0755), 0);
	CHECK_INT(layers_publish(dir, ONE, "data", &err), 0);
	CHECK_INT(layers_publish(dir, ONE, "data.usr", &err), 0);
	CHECK_INT(layers_remove(state, "python@3.12", "data", &err), 0);
	CHECK_INT(faccessat(dir, ONE, F_OK, 0), 0);
	CHECK_INT(layers_remove(state, "python@3.12", "data.usr", &err), 0);
	CHECK_INT(faccessat(dir, ONE, F_OK, 0), -1);
	CHECK(layers_remove(state, "python@3.12", "data", &err) < 0);
	CHECK_INT(err.kind, ERR_NOT_FOUND);
	CHECK(layers_remove(state, "../x", "data", &err) < 0);
	end_state();
}

TEST(a_link_that_points_elsewhere_is_no_layer)
{
	char path[PATH_MAX], digest[LAYERS_DIGEST_SIZE];
	int dir = make_state();

	CHECK_INT(symlinkat("../../../etc", dir, "data"), 0);
	CHECK_INT(layers_find(state, &python, "data", path, digest), -ENOENT);
	CHECK_INT(unlinkat(dir, "data", 0), 0);
	CHECK_INT(symlinkat("/etc", dir, ONE), 0);
	CHECK_INT(symlinkat(ONE, dir, "data"), 0);
	CHECK_INT(layers_find(state, &python, "data", path, digest), -ENOENT);
	end_state();
}

TEST(interpreters_of_usr_have_links_of_their_own)
{
	char name[RUNTIME_NAME_SIZE];
	struct runtime runtime = { .prefix = "/usr" };

	CHECK_INT(layers_link_name(&runtime, "data", name), 0);
	CHECK_STR(name, "data.usr");
	snprintf(runtime.prefix, sizeof(runtime.prefix), "/usr/local");
	CHECK_INT(layers_link_name(&runtime, "data", name), 0);
	CHECK_STR(name, "data.usr-local");
	CHECK_INT(layers_link_name(&python, "data", name), 0);
	CHECK_STR(name, "data");
}

/* A python whose pip answers as it is told. */
static struct runtime fake_python(const char *script)
{
	struct runtime runtime = { .name = "python@3.12", .prefix = "/opt/py", .site = "lib/site" };

	snprintf(runtime.exe, sizeof(runtime.exe), "%s/python", state);
	FILE *file = fopen(runtime.exe, "w");
	CHECK(file != NULL);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	fclose(file);
	CHECK_INT(chmod(runtime.exe, 0755), 0);
	return runtime;
}

TEST(a_layer_is_built_whole_and_only_once)
{
	char path[PATH_MAX], digest[LAYERS_DIGEST_SIZE];
	int dir = make_state();
	struct runtime runtime =
		fake_python("echo \"$3\" >>${0%/*}/calls\n"
			    "while [ $# -gt 0 ] && [ \"$1\" != --target ]; do shift; done\n"
			    "[ $# -eq 0 ] || touch \"$2/numpy.py\"");
	struct build build = { .runtime = &runtime,
			       .state_dir = state,
			       .set = "data",
			       .lock = "/dev/null",
			       .digest = ONE };

	CHECK_INT(build_layer(&build, &err), 0);
	CHECK_INT(layers_find(state, &runtime, "data", path, digest), 0);
	CHECK_INT(faccessat(dir, ONE "/lib/site/numpy.py", F_OK, 0), 0);
	CHECK_INT(build_layer(&build, &err), 1);
	end_state();
}

TEST(a_build_that_fails_leaves_nothing_and_tells_the_last_lines)
{
	int dir = make_state();
	struct runtime runtime =
		fake_python("i=0; while [ $i -lt 200 ]; do echo line $i of many; i=$((i+1)); done\n"
			    "echo 'ERROR: No matching distribution found for numpy'; exit 1");
	struct build build = { .runtime = &runtime,
			       .state_dir = state,
			       .set = "data",
			       .lock = "/dev/null",
			       .digest = ONE };

	CHECK(build_layer(&build, &err) < 0);
	CHECK(build.index_failed);
	CHECK(strstr(build.tail, "line 199 of many\nERROR: No matching") != NULL);
	CHECK(strlen(build.tail) < sizeof(build.tail));
	CHECK_STR(build.reason, "No matching distribution found for numpy");
	CHECK_INT(faccessat(dir, ".build-" ONE, F_OK, 0), -1);
	CHECK_INT(count(), 0);
	char layers[PATH_MAX];
	snprintf(layers, sizeof(layers), "%s/layers", state);
	CHECK_INT(access(layers, F_OK), -1);
	end_state();
}

TEST(a_build_without_an_answer_tells_why_there_was_none)
{
	make_state();
	struct runtime runtime = fake_python(
		"echo \"WARNING: Retrying after connection broken by 'NewConnectionError('<x "
		"object "
		"at 0x1>: Failed to connect: [Errno 111] Connection refused')': /simple/numpy/\"\n"
		"echo 'ERROR: No matching distribution found for numpy'; exit 1");
	struct build build = { .runtime = &runtime,
			       .state_dir = state,
			       .set = "data",
			       .lock = "/dev/null",
			       .digest = ONE };

	CHECK(build_layer(&build, &err) < 0);
	CHECK(build.index_failed);
	CHECK_STR(build.reason, "Failed to connect: [Errno 111] Connection refused");
	end_state();
}
