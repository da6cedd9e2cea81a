/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_runtimes.c - `cay runtimes`: what can be run here, what cannot, and why. */
#include "base/auto.h"
#include "base/err.h"
#include "cli.h"
#include "options.h"
#include "runtime/runtime.h"
#include "say.h"
#include "state.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct runtimes_options {
	bool json;
};

static const struct option options[] = {
	{ .name = "json",
	  .kind = OPTION_FLAG,
	  .at = offsetof(struct runtimes_options, json),
	  .help = "print one JSON document" },
	{ 0 },
};

static const struct option_set set = {
	.usage = "cay runtimes [--json]",
	.about = "Lists the languages that can be run here, at which versions, and what was found "
		 "but cannot\nbe used.  `*` is what the plain name of a language means.",
	.options = options,
};

static void print_safe(const char *text)
{
	char safe[2048];

	say_escape(safe, sizeof(safe), text, strlen(text));
	fputs(safe, stdout);
}

static void print_usable(const struct runtime *runtime)
{
	printf("  %c %-12s %-9s %-10s ", runtime->is_default ? '*' : ' ', runtime->name,
	       runtime->version, runtime->layer[0] ? "with data" : "");
	print_safe(runtime->exe);
	putchar('\n');
}

static void print_unusable(const struct runtime *runtime)
{
	printf("  - ");
	print_safe(runtime->exe);
	printf(": ");
	print_safe(runtime->why);
	putchar('\n');
}

/* What can be used first, then the rest with its reasons. */
static void print_lang(struct runtimes *runtimes, const struct runtime *list, size_t count,
		       const char *lang, const char *title)
{
	struct runtime runner;
	struct err err;

	printf("%s\n", title);
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i].lang, lang) == 0 && list[i].usable)
			print_usable(&list[i]);
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i].lang, lang) == 0 && !list[i].usable)
			print_unusable(&list[i]);
	if (runtimes_find(runtimes, lang, &runner, &err) < 0) {
		printf("    ");
		print_safe(err.text);
		putchar('\n');
	} else if (strcmp(runner.lang, lang) != 0) {
		printf("  * by %s\n", runner.name);
	}
}

static json_t *describe(const struct runtime *runtime)
{
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:b,s:b,s:s*,s:s*}", "lang", runtime->lang, "name",
			 runtime->name, "version", runtime->version, "path", runtime->exe, "prefix",
			 runtime->prefix, "usable", runtime->usable, "default", runtime->is_default,
			 "libraries", runtime->layer[0] ? runtime->layer : NULL, "why",
			 runtime->why[0] ? runtime->why : NULL);
}

static void print_json(struct runtimes *runtimes, const struct runtime *list, size_t count)
{
	json_t *languages = json_array(), *found = json_array();
	const char *lang, *title;
	struct runtime runner;
	struct err err;

	for (size_t i = 0; (lang = runtimes_lang(runtimes, i, &title)); i++) {
		bool missing = runtimes_find(runtimes, lang, &runner, &err) < 0;
		json_array_append_new(languages, json_pack("{s:s,s:s,s:b,s:s*,s:s*}", "lang", lang,
							   "title", title, "usable", !missing,
							   "default", missing ? NULL : runner.name,
							   "why", missing ? err.text : NULL));
	}
	for (size_t i = 0; i < count; i++)
		json_array_append_new(found, describe(&list[i]));
	json_t *document = json_pack("{s:o,s:o}", "languages", languages, "runtimes", found);
	auto_free char *text = json_dumps(document, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	json_decref(document);
	puts(text ? text : "{}");
}

int cmd_runtimes(int argc, char **argv)
{
	struct runtimes_options mine = { 0 };
	struct operands operands;
	struct runtimes *runtimes;
	const struct runtime *list;
	char state[PATH_MAX];
	const char *lang, *title;
	size_t count;
	struct err err;

	int r = options_parse(&set, argc, argv, &mine, &operands, &err);
	if (r == 0 && operands.n > 0)
		r = err_make(&err, ERR_INVALID, "'%.64s' is too much; usage: cay runtimes [--json]",
			     operands.items[0]);
	if (r < 0)
		return say_failure(&err, NULL, mine.json, EXIT_USAGE);
	if (r == OPTIONS_HELPED)
		return EXIT_DONE;
	/* The list needs no state; with it, what is found now is known to the next run. */
	const char *state_or_none = state_dir(state, &err) == 0 ? state : NULL;
	if (runtimes_open(state_or_none, NULL, &runtimes, &err) < 0)
		return say_failure(&err, NULL, mine.json, EXIT_CAY_FAILED);
	r = runtimes_scan(runtimes, &list, &count, &err);
	if (r < 0) {
		runtimes_close(runtimes);
		return say_failure(&err, NULL, mine.json, EXIT_CAY_FAILED);
	}
	if (mine.json)
		print_json(runtimes, list, count);
	for (size_t i = 0; !mine.json && (lang = runtimes_lang(runtimes, i, &title)); i++)
		print_lang(runtimes, list, count, lang, title);
	runtimes_close(runtimes);
	return EXIT_DONE;
}
