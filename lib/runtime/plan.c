/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning: which language a program is in, and what is started for it. */
#include "base/auto.h"
#include "base/err.h"
#include "runtime/layers.h"
#include "runtime/prefix.h"
#include "runtime/set.h"
#include "runtime/shebang.h"
#include "runtime/version.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct choice {
	const struct manifest *manifest;
	char version[RUNTIME_VERSION_SIZE]; /* wanted; may be empty */
	char options[SHEBANG_LINE_MAX + 1]; /* of a shebang */
};

static int choose_by_file(const struct runtimes *set, const struct runtime_want *want,
			  const struct shebang *shebang, struct choice *choice, struct err *err)
{
	choice->manifest = want->file ? manifests_find_extension(&set->manifests, want->file)
				      : manifests_code_default(&set->manifests);
	if (choice->manifest)
		return 0;
	if (shebang)
		return err_make(err, ERR_INVALID,
				"the first line of '%.100s' asks for '%.60s', which is no language "
				"of cay; `cay run -- %.60s FILE` starts any command",
				want->file ? want->file : "the code", shebang->name, shebang->name);
	return err_make(err, ERR_INVALID,
			"cannot tell the language of '%.100s'; name it with --lang, or give a "
			"command after --",
			want->file ? want->file : "the code");
}

static int choose(const struct runtimes *set, const struct runtime_want *want,
		  struct choice *choice, struct err *err)
{
	struct shebang shebang;

	*choice = (struct choice){ 0 };
	if (want->lang)
		return set_parse_lang(set, want->lang, &choice->manifest, choice->version, err);
	bool has = want->head && shebang_parse(want->head, want->head_len, &shebang);
	choice->manifest = has ? manifests_find_shebang(&set->manifests, shebang.name) : NULL;
	if (!choice->manifest)
		return choose_by_file(set, want, has ? &shebang : NULL, choice, err);
	snprintf(choice->version, sizeof(choice->version), "%s", shebang.version);
	memcpy(choice->options, shebang.options, sizeof(choice->options));
	return 0;
}

/* Texts of a plan, one after the other. */
struct writer {
	struct runtime_plan *plan;
	size_t used;
	const char *exe; /* in the sandbox */
	unsigned cpus;
	bool full;
};

/* Copies text with {exe} and {cpus} put in; {file} stays for runtime_argv(). */
static const char *put(struct writer *w, const char *text)
{
	char *start = w->plan->text + w->used;
	size_t room = sizeof(w->plan->text) - w->used, len = 0;

	while (*text && len < room) {
		int n;
		if (strncmp(text, "{exe}", 5) == 0) {
			n = snprintf(start + len, room - len, "%s", w->exe);
			text += 5;
		} else if (strncmp(text, "{cpus}", 6) == 0) {
			n = snprintf(start + len, room - len, "%u", w->cpus);
			text += 6;
		} else {
			start[len] = *text++;
			n = 1;
		}
		len += (size_t)n;
	}
	if (len >= room) {
		w->full = true;
		return "";
	}
	start[len] = '\0';
	w->used += len + 1;
	return start;
}

static size_t put_words(struct writer *w, const char *words, const char **ret_words, size_t n)
{
	char word[SHEBANG_LINE_MAX + 1];

	while (words_next(&words, word, sizeof(word))) {
		if (n == RUNTIME_ARGS_MAX) {
			w->full = true;
			break;
		}
		ret_words[n++] = put(w, word);
	}
	ret_words[n] = NULL;
	return n;
}

/* Options of the first line go between the interpreter and the file. */
static void put_run(struct writer *w, const struct choice *choice)
{
	const char *rest = choice->manifest->run;
	char first[64];

	if (!words_next(&rest, first, sizeof(first)))
		return;
	size_t n = put_words(w, first, w->plan->run, 0);
	n = put_words(w, choice->options, w->plan->run, n);
	put_words(w, rest, w->plan->run, n);
}

static void put_env(struct writer *w, const struct manifest *manifest, const char *library_path)
{
	const char *at = manifest->env;
	char line[512];
	size_t n = 0;

	if (library_path[0]) {
		snprintf(line, sizeof(line), "LD_LIBRARY_PATH=%.400s", library_path);
		w->plan->env[n++] = put(w, line);
	}
	while (lines_next(&at, line, sizeof(line))) {
		if (n == RUNTIME_ENV_MAX) {
			w->full = true;
			break;
		}
		w->plan->env[n++] = put(w, line);
	}
	w->plan->env[n] = NULL;
}

/* Code that cannot be anything but an ECMAScript module. */
static bool is_module(const char *code, size_t len)
{
	static const char *const starts[] = { "import ", "import{", "import*", "import\"",
					      "import'", "export ", "export{", "await " };

	while (len > 0) {
		const char *newline = memchr(code, '\n', len);
		size_t line = newline ? (size_t)(newline - code) + 1 : len;
		for (size_t i = 0; i < ARRAY_LEN(starts); i++)
			if (line > strlen(starts[i]) &&
			    memcmp(code, starts[i], strlen(starts[i])) == 0)
				return true;
		code += line;
		len -= line;
	}
	return false;
}

static void set_file_name(struct runtime_plan *plan, const struct manifest *manifest,
			  const struct runtime_want *want)
{
	bool module =
		manifest->module_file[0] && want->head && is_module(want->head, want->head_len);

	snprintf(plan->file_name, sizeof(plan->file_name), "%s",
		 module ? manifest->module_file : manifest->code_file);
}

static void set_note(struct runtime_plan *plan, const struct manifest *manifest,
		     const struct manifest *interpreter, const struct choice *choice)
{
	if (manifest == interpreter && !choice->version[0] && manifest->preferred[0] &&
	    !version_matches(plan->version, manifest->preferred))
		snprintf(plan->note, sizeof(plan->note), "%s %s is not here; this runs with %s",
			 manifest->title, manifest->preferred, plan->version);
}

/* Where things are in the sandbox.  A prefix outside /usr moves to RUNTIME_ROOT/NAME. */
static int place(struct runtime_plan *plan, const struct runtime *runtime,
		 char ret_exe[static PATH_MAX], char ret_library_path[static PATH_MAX])
{
	bool in_usr = prefix_is_in_usr(runtime->prefix);
	const char *root = in_usr ? runtime->prefix : plan->target;

	snprintf(plan->target, sizeof(plan->target), "%s%s", in_usr ? "/usr" : RUNTIME_ROOT "/",
		 in_usr ? "" : runtime->name);
	if (in_usr)
		snprintf(ret_exe, PATH_MAX, "%s", runtime->exe);
	else
		snprintf(ret_exe, PATH_MAX, "%s%s", root, runtime->exe + strlen(runtime->prefix));
	if (runtime->shared && strcmp(root, "/usr") != 0)
		snprintf(ret_library_path, PATH_MAX, "%s/lib", root);
	if (!in_usr)
		memcpy(plan->prefix, runtime->prefix, sizeof(plan->prefix));
	if (strcmp(root, "/usr") != 0) {
		const char *slash = strrchr(ret_exe, '/');
		int len = snprintf(plan->bin, sizeof(plan->bin), "%.*s", (int)(slash - ret_exe),
				   ret_exe);
		if (len >= (int)sizeof(plan->bin))
			return -ENAMETOOLONG;
	}
	return 0;
}

static int finish(struct writer *w, const struct choice *choice, const struct runtime_want *want,
		  const char *library_path, struct err *err)
{
	w->cpus = want->cpus ? want->cpus : 1;
	put_words(w, choice->manifest->compile, w->plan->compile, 0);
	put_run(w, choice);
	put_env(w, choice->manifest, library_path);
	set_file_name(w->plan, choice->manifest, want);
	if (w->full)
		return err_make(err, ERR_LIMIT, "the command of %s is too long", w->plan->name);
	return 0;
}

/* In an image that we did not look into: the plain name, with the version where one was asked
 * for and the manifest knows such a command. */
static int plan_image(const struct runtimes *set, const struct choice *choice,
		      const struct runtime_want *want, struct runtime_plan *plan, struct err *err)
{
	const struct manifest *interpreter =
		manifests_interpreter(&set->manifests, choice->manifest);
	const char *commands = interpreter->commands;
	char exe[64] = "", versioned[64];
	struct writer w = { .plan = plan, .exe = exe };

	words_next(&commands, exe, sizeof(exe));
	snprintf(versioned, sizeof(versioned), "%s%s", interpreter->name, choice->version);
	if (choice->version[0] && words_have(interpreter->commands, versioned))
		memcpy(exe, versioned, sizeof(exe));
	snprintf(plan->name, sizeof(plan->name), "%s%s%.7s", interpreter->name,
		 choice->version[0] ? "@" : "", choice->version);
	return finish(&w, choice, want, "", err);
}

static int plan_found(const struct runtimes *set, const struct choice *choice,
		      const struct runtime_want *want, const struct runtime *runtime,
		      struct runtime_plan *plan, struct err *err)
{
	char exe[PATH_MAX], library_path[PATH_MAX] = "";
	struct writer w = { .plan = plan, .exe = exe };

	memcpy(plan->name, runtime->name, sizeof(plan->name));
	memcpy(plan->version, runtime->version, sizeof(plan->version));
	memcpy(plan->exe, runtime->exe, sizeof(plan->exe));
	int r = place(plan, runtime, exe, library_path);
	if (r < 0)
		return err_errno(err, -r, "place %s in the sandbox", runtime->name);
	if (set->state_dir && runtime->site[0] && !want->no_layer)
		(void)layers_find(set->state_dir, runtime, LAYERS_DATA, plan->layer,
				  plan->layer_digest); /* most have none */
	set_note(plan, choice->manifest, manifests_interpreter(&set->manifests, choice->manifest),
		 choice);
	return finish(&w, choice, want, library_path, err);
}

int runtimes_plan(struct runtimes *set, const struct runtime_want *want,
		  struct runtime_plan *ret_plan, struct err *err)
{
	struct choice choice;

	int r = choose(set, want, &choice, err);
	if (r < 0)
		return r;
	memset(ret_plan, 0, offsetof(struct runtime_plan, text));
	if (want->image)
		return plan_image(set, &choice, want, ret_plan, err);
	r = set_know(set, err);
	if (r < 0)
		return r;
	const struct found *found = set_pick(set, choice.manifest, choice.version);
	if (!found)
		return set_refuse(set, choice.manifest, choice.version, err);
	return plan_found(set, &choice, want, &found->runtime, ret_plan, err);
}

size_t runtime_argv(const char *const *words, const char *file,
		    const char *ret_argv[static RUNTIME_ARGS_MAX + 1])
{
	size_t n = 0;

	for (; n < RUNTIME_ARGS_MAX && words[n]; n++)
		ret_argv[n] = strcmp(words[n], "{file}") == 0 ? file : words[n];
	ret_argv[n] = NULL;
	return n;
}
