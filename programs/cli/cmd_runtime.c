/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_runtime.c - `cay runtime add|ls|rm`: libraries that are laid over a language. */
#include "base/auto.h"
#include "base/err.h"
#include "cli.h"
#include "options.h"
#include "receipt/digest.h"
#include "runtime/build.h"
#include "runtime/layers.h"
#include "runtime/runtime.h"
#include "runtime_debian.h"
#include "say.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct runtime_options {
	const char *with;
	bool json, quiet;
};

static const struct option options[] = {
	{ .name = "with",
	  .kind = OPTION_TEXT,
	  .value = "SET",
	  .at = offsetof(struct runtime_options, with),
	  .help = "which libraries: data (numpy, pandas, matplotlib, ...)" },
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = OPTION_FLAG,
	  .at = offsetof(struct runtime_options, quiet),
	  .help = "say nothing but errors" },
	{ .name = "json",
	  .kind = OPTION_FLAG,
	  .at = offsetof(struct runtime_options, json),
	  .help = "ls: print one JSON document" },
	{ 0 },
};

static const struct option_set set = {
	.usage = "cay runtime add python@3.12 --with data\n"
		 "       cay runtime ls [--json]\n"
		 "       cay runtime rm python@3.12 [--with data]",
	.about =
		"Adds libraries to a language, lists them, takes them away.  They are pinned with "
		"hashes, kept\nin cay's state directory and laid read-only over the interpreter in "
		"the sandbox; the\ninterpreter itself is not changed.  Where no package index can "
		"be reached, "
		"root gets Debian's\npackages for the Python of /usr instead: these are installed "
		"on this "
		"machine.",
	.options = options,
};

/* One line on a terminal, written over by the next; nothing elsewhere. */
static void on_stage(void *arg, const char *stage, const char *what)
{
	unsigned *packages = arg;
	char safe[96];

	if (strcmp(stage, "getting") == 0)
		++*packages;
	say_escape(safe, sizeof(safe), what, strlen(what));
	fprintf(stderr, "\r\033[K  %s %s", stage, safe);
	if (strcmp(stage, "getting") == 0)
		fprintf(stderr, " (%u)", *packages);
	fflush(stderr);
}

static void clear_line(void)
{
	fputs("\r\033[K", stderr);
}

/* The lock of a set for a runtime: DIR/python/data-3.12.txt. */
static int find_lock(const struct runtimes *runtimes, const struct runtime *runtime,
		     const char *with, char ret_path[static PATH_MAX], struct err *err)
{
	const char *at = strchr(runtime->name, '@');

	if (at && snprintf(ret_path, PATH_MAX, "%s/%s/%s-%s.txt", runtimes_dir(runtimes),
			   runtime->lang, with, at + 1) >= PATH_MAX)
		return err_make(err, ERR_INVALID, "the path of the lock file is too long");
	if (!at || !build_modules(with) || access(ret_path, F_OK) < 0)
		return err_make(err, ERR_NOT_FOUND,
				"there are no libraries '%.40s' for %s; there are: data for python",
				with, runtime->name);
	return 0;
}

/* The same libraries for the same interpreter at the same place are the same layer. */
static int digest_lock(const char *lock, const struct runtime *runtime,
		       char ret_hex[static DIGEST_HEX_SIZE], struct err *err)
{
	char of_lock[DIGEST_HEX_SIZE], text[512];
	uint64_t bytes;

	auto_close int fd = open(lock, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : digest_of_fd(fd, of_lock, &bytes);
	if (r < 0)
		return err_errno(err, -r, "read '%s'", lock);
	int len =
		snprintf(text, sizeof(text), "%s\n%s\n%s\n", runtime->name, runtime->site, of_lock);
	digest_of(text, (size_t)len, ret_hex);
	return 0;
}

static int fail_build(const struct build *build, const struct err *err)
{
	char line[512];
	const char *at = build->tail;

	while (*at) {
		size_t len = strcspn(at, "\n");
		say_escape(line, sizeof(line), at, len);
		fprintf(stderr, "  | %s\n", line);
		at += len + (at[len] == '\n');
	}
	return say_failure(err, NULL, false, EXIT_CAY_FAILED);
}

/* With pip; for the system's Python from Debian where pip finds no packages. */
static int add_layer(struct build *build, bool quiet, struct err *err)
{
	unsigned packages = 0;
	bool terminal = isatty(STDERR_FILENO) && !quiet;

	build->on_stage = terminal ? on_stage : NULL;
	build->arg = &packages;
	int r = build_layer(build, err);
	if (terminal)
		clear_line();
	if (r == 1)
		say("%s has '%s' already", build->runtime->name, build->set);
	else if (r == 0)
		say("%s has '%s' now: %s", build->runtime->name, build->set,
		    build_modules(build->set));
	if (r >= 0)
		return EXIT_DONE;
	if (build->index_failed)
		say_warning("pip could not get the libraries: %s",
			    build->reason[0] ? build->reason : err->text);
	if (build->index_failed && strcmp(build->runtime->prefix, "/usr") == 0)
		return debian_add(build, err);
	if (build->index_failed)
		err_make(err, ERR_UNSUPPORTED,
			 "no package index gives pip the libraries of %s (its last words are "
			 "above); "
			 "PIP_INDEX_URL or pip.conf names another one",
			 build->runtime->name);
	return fail_build(build, err);
}

static int add(const struct runtime_options *mine, const char *lang, struct err *err)
{
	char state[PATH_MAX], lock[PATH_MAX], digest[DIGEST_HEX_SIZE];
	struct runtimes *runtimes;
	struct runtime runtime;

	int r = state_dir(state, err);
	if (r == 0)
		r = runtimes_open(state, NULL, &runtimes, err);
	if (r < 0)
		return say_failure(err, NULL, false, EXIT_CAY_FAILED);
	r = runtimes_find(runtimes, lang, &runtime, err);
	if (r == 0)
		r = find_lock(runtimes, &runtime, mine->with, lock, err);
	if (r == 0)
		r = digest_lock(lock, &runtime, digest, err);
	runtimes_close(runtimes);
	if (r < 0)
		return say_failure(err, NULL, false, EXIT_CAY_FAILED);
	struct build build = { .runtime = &runtime,
			       .state_dir = state,
			       .set = mine->with,
			       .lock = lock,
			       .digest = digest };
	return add_layer(&build, mine->quiet, err);
}

struct listing {
	json_t *list; /* NULL: lines */
	unsigned count;
};

static int on_listed(void *arg, const char *name, const char *link, const char *digest)
{
	struct listing *listing = arg;

	listing->count++;
	if (listing->list)
		json_array_append_new(listing->list,
				      json_pack("{s:s,s:s,s:s}", "runtime", name, "libraries", link,
						"digest", digest));
	else
		printf("%-14s %-14s %.16s\n", name, link, digest);
	return 0;
}

static int list_layers(bool json, struct err *err)
{
	char state[PATH_MAX];

	if (state_path(state, err) < 0)
		return say_failure(err, NULL, json, EXIT_CAY_FAILED);
	struct listing listing = { json ? json_array() : NULL, 0 };
	layers_each(state, on_listed, &listing);
	if (!json && listing.count == 0)
		say("no libraries were added; `cay runtime add python --with data` adds some");
	if (json) {
		auto_free char *text = json_dumps(listing.list, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		puts(text ? text : "[]");
	}
	json_decref(listing.list);
	return EXIT_DONE;
}

struct removal {
	const char *name, *set;
	char link[RUNTIME_NAME_SIZE]; /* the next to go; found while nothing is changed */
};

static int on_removable(void *arg, const char *name, const char *link, const char *digest)
{
	struct removal *removal = arg;
	size_t len = strlen(removal->set);

	(void)digest;
	if (strcmp(name, removal->name) != 0 || strncmp(link, removal->set, len) != 0 ||
	    (link[len] != '\0' && link[len] != '.') || strlen(link) >= sizeof(removal->link))
		return 0;
	memcpy(removal->link, link, strlen(link) + 1);
	return 1;
}

static int remove_layer(const struct runtime_options *mine, const char *name, struct err *err)
{
	char state[PATH_MAX];
	struct removal removal = { name, mine->with ? mine->with : LAYERS_DATA, "" };
	unsigned removed = 0;

	if (state_dir(state, err) < 0)
		return say_failure(err, NULL, false, EXIT_CAY_FAILED);
	while (layers_each(state, on_removable, &removal) == 1) {
		if (layers_remove(state, name, removal.link, err) < 0)
			return say_failure(err, NULL, false, EXIT_CAY_FAILED);
		removed++;
	}
	if (removed == 0) {
		err_make(err, ERR_NOT_FOUND,
			 "%.40s has no libraries '%.40s'; `cay runtime ls` lists "
			 "what is there",
			 name, removal.set);
		return say_failure(err, NULL, false, EXIT_CAY_FAILED);
	}
	say("%s no longer has '%s'", name, removal.set);
	return EXIT_DONE;
}

static int refuse_usage(struct err *err, const char *what, bool rm)
{
	err_make(err, ERR_INVALID, "%s, as in: cay runtime %s python@3.12%s", what,
		 rm ? "rm" : "add", rm ? "" : " --with data");
	return say_failure(err, NULL, false, EXIT_USAGE);
}

int cmd_runtime(int argc, char **argv)
{
	struct runtime_options mine = { 0 };
	struct operands operands;
	struct err err;

	int r = options_parse(&set, argc, argv, &mine, &operands, &err);
	if (r < 0)
		return say_failure(&err, NULL, mine.json, EXIT_USAGE);
	if (r == OPTIONS_HELPED)
		return EXIT_DONE;
	say_set_quiet(mine.quiet);
	const char *verb = operands.n > 0 ? operands.items[0] : "";
	if (strcmp(verb, "ls") == 0 && operands.n == 1)
		return list_layers(mine.json, &err);
	if (strcmp(verb, "add") != 0 && strcmp(verb, "rm") != 0)
		return refuse_usage(&err, "runtime needs add, ls or rm", false);
	if (operands.n != 2)
		return refuse_usage(&err, "exactly one language must be named",
				    strcmp(verb, "rm") == 0);
	if (strcmp(verb, "rm") == 0)
		return remove_layer(&mine, operands.items[1], &err);
	if (!mine.with)
		return refuse_usage(&err, "--with must say which libraries", false);
	return add(&mine, operands.items[1], &err);
}
