/* SPDX-License-Identifier: Apache-2.0
 *
 * Picking: of what is there, the one that is meant; or why there is none. */
#include "base/auto.h"
#include "base/err.h"
#include "runtime/prefix.h"
#include "runtime/set.h"
#include "runtime/version.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The first that matches `wanted`, or the newest when there is a choice of versions. */
static struct found *best(struct runtimes *set, const struct manifest *interpreter,
			  const struct manifest *manifest, const char *wanted)
{
	struct found *best_found = NULL;

	for (size_t i = 0; i < set->findings.count; i++) {
		struct found *found = &set->findings.items[i];
		const struct runtime *runtime = &found->runtime;
		if (found->hidden || !runtime->usable ||
		    strcmp(runtime->lang, interpreter->name) != 0 ||
		    !version_matches(runtime->version, wanted) ||
		    !version_is_between(runtime->version, manifest->oldest, manifest->newest))
			continue;
		char cut[2][RUNTIME_VERSION_SIZE] = { "", "" };
		if (best_found && interpreter->version_parts) {
			version_cut(runtime->version, interpreter->version_parts, cut[0],
				    sizeof(cut[0]));
			version_cut(best_found->runtime.version, interpreter->version_parts, cut[1],
				    sizeof(cut[1]));
		}
		if (!best_found || version_compare(cut[0], cut[1]) > 0)
			best_found = found;
	}
	return best_found;
}

/* Is it still the file that was asked, and may its prefix be shown?  A file that changed is
 * forgotten; the caller looks again. */
static bool still_good(const struct runtimes *set, struct found *found)
{
	struct runtime *runtime = &found->runtime;
	struct identity identity;
	struct stat st;
	struct err err;

	if (stat(found->key, &st) < 0)
		return false;
	identity = identity_of(&st);
	if (!identity_is_same(&identity, &found->identity))
		return false;
	if (prefix_check(runtime->prefix, runtime->exe, set->state_dir, &err) < 0) {
		runtime->usable = false;
		snprintf(runtime->why, sizeof(runtime->why), "%.380s", err.text);
	}
	return true;
}

static const struct found *pick_known(struct runtimes *set, const struct manifest *manifest,
				      const char *version)
{
	const struct manifest *interpreter = manifests_interpreter(&set->manifests, manifest);
	const char *preferred = interpreter->preferred;
	struct found *found;

	do {
		found = NULL;
		/* python@3 means the preferred one, too, when that is a 3. */
		if (preferred[0] && version_matches(preferred, version))
			found = best(set, interpreter, manifest, preferred);
		if (!found)
			found = best(set, interpreter, manifest, version);
		if (found && !still_good(set, found))
			return NULL;
	} while (found && !found->runtime.usable);
	return found;
}

const struct found *set_pick(struct runtimes *set, const struct manifest *manifest,
			     const char *version)
{
	struct err err;
	const struct found *found = pick_known(set, manifest, version);

	/* Before we say no: something may have come or changed that the cache did not see. */
	if (!found && !set->fresh && set_look(set, &err) == 0)
		found = pick_known(set, manifest, version);
	return found;
}

struct sentence {
	char *text;
	size_t size, len;
};

static void append(struct sentence *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void append(struct sentence *s, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(s->text + s->len, s->size - s->len, fmt, args);
	va_end(args);
	if (n > 0)
		s->len = s->len + (size_t)n < s->size ? s->len + (size_t)n : s->size - 1;
}

/* " (there: python@3.11, python@3.13)" */
static void append_usable(const struct runtimes *set, const struct manifest *interpreter,
			  struct sentence *s)
{
	const char *last = "";
	bool any = false;

	for (size_t i = 0; i < set->findings.count && s->len < s->size - 64; i++) {
		const struct runtime *runtime = &set->findings.items[i].runtime;
		if (!runtime->usable || set->findings.items[i].hidden ||
		    strcmp(runtime->lang, interpreter->name) != 0 ||
		    strcmp(runtime->name, last) == 0)
			continue;
		append(s, "%s%s %s", any ? ", " : " (there: ", runtime->name, runtime->version);
		last = runtime->name;
		any = true;
	}
	if (any)
		append(s, ")");
}

/* "; `pyenv install 3.12` brings it" */
static void append_get(const struct manifest *manifest, const char *version, struct sentence *s)
{
	const char *at = manifest->get, *mark;
	const char *wanted = version[0] ? version : manifest->preferred;

	if (!at[0])
		return;
	append(s, "; ");
	while ((mark = strstr(at, "{version}"))) {
		append(s, "%.*s%s", (int)(mark - at), at, wanted);
		at = mark + strlen("{version}");
	}
	append(s, "%s", at);
}

/* One of that version that is here and cannot be used says more than that none is here. */
static const struct runtime *find_unusable(const struct runtimes *set,
					   const struct manifest *interpreter, const char *version)
{
	for (size_t i = 0; i < set->findings.count; i++) {
		const struct runtime *runtime = &set->findings.items[i].runtime;
		if (!runtime->usable && !set->findings.items[i].hidden && runtime->why[0] &&
		    strcmp(runtime->lang, interpreter->name) == 0 && runtime->version[0] &&
		    version_matches(runtime->version, version))
			return runtime;
	}
	return NULL;
}

/* One that we did not dare to ask, so that its version is not known, but whose path speaks of it.
 */
static const struct runtime *find_unasked(const struct runtimes *set,
					  const struct manifest *interpreter, const char *version)
{
	for (size_t i = 0; i < set->findings.count; i++) {
		const struct runtime *runtime = &set->findings.items[i].runtime;
		if (!runtime->usable && !set->findings.items[i].hidden && runtime->why[0] &&
		    strcmp(runtime->lang, interpreter->name) == 0 && !runtime->version[0] &&
		    strstr(runtime->exe, version))
			return runtime;
	}
	return NULL;
}

static void describe_missing(const struct runtimes *set, const struct manifest *manifest,
			     const char *version, struct sentence *s)
{
	const struct manifest *interpreter = manifests_interpreter(&set->manifests, manifest);

	if (interpreter != manifest)
		append(s, "%s needs %s %s or newer, which is not on this machine", manifest->title,
		       interpreter->title, manifest->oldest);
	else
		append(s, "%s%s%s is not on this machine", manifest->name, version[0] ? "@" : "",
		       version);
	append_usable(set, interpreter, s);
	append_get(manifest, version, s);
}

int set_refuse(const struct runtimes *set, const struct manifest *manifest, const char *version,
	       struct err *err)
{
	const struct manifest *interpreter = manifests_interpreter(&set->manifests, manifest);
	char text[400];
	struct sentence s = { text, sizeof(text), 0 };

	text[0] = '\0';
	if (version[0] && interpreter->oldest[0] &&
	    !version_is_between(version, interpreter->oldest, interpreter->newest) &&
	    !version_matches(interpreter->oldest, version))
		return err_make(err, ERR_UNSUPPORTED, "%s@%s is not supported; %s to %s are",
				manifest->name, version, interpreter->oldest, interpreter->newest);
	const struct runtime *bad =
		interpreter == manifest ? find_unusable(set, interpreter, version) : NULL;
	if (bad && version_is_between(bad->version, interpreter->oldest, interpreter->newest)) {
		append(&s, "%s at '%.120s' cannot be used: %s", bad->name, bad->exe, bad->why);
		return err_make(err, ERR_UNSUPPORTED, "%s", text);
	}
	const struct runtime *unasked =
		interpreter == manifest ? find_unasked(set, interpreter, version) : NULL;
	if (unasked) {
		append(&s, "%s%s%s at '%.120s' cannot be used: %s", manifest->name,
		       version[0] ? "@" : "", version, unasked->exe, unasked->why);
		return err_make(err, ERR_UNSUPPORTED, "%s", text);
	}
	describe_missing(set, manifest, version, &s);
	return err_make(err, ERR_NOT_FOUND, "%s", text);
}

static int refuse_lang(const struct runtimes *set, const char *lang, struct err *err)
{
	char text[256];
	struct sentence s = { text, sizeof(text), 0 };

	text[0] = '\0';
	for (size_t i = 0; i < set->manifests.count; i++)
		append(&s, "%s%s", i ? ", " : "", set->manifests.items[i].name);
	return err_make(err, ERR_INVALID, "there is no language '%.64s'; there are %s", lang, text);
}

int set_parse_lang(const struct runtimes *set, const char *lang,
		   const struct manifest **ret_manifest,
		   char ret_version[static RUNTIME_VERSION_SIZE], struct err *err)
{
	const char *at = strchr(lang, '@');
	size_t len = at ? (size_t)(at - lang) : strlen(lang);
	char name[32];

	if (len >= sizeof(name))
		return refuse_lang(set, lang, err);
	memcpy(name, lang, len);
	name[len] = '\0';
	const struct manifest *manifest = manifests_find(&set->manifests, name);
	if (!manifest)
		return refuse_lang(set, name, err);
	if (at && !version_is_valid(at + 1))
		return err_make(
			err, ERR_INVALID, "'%.64s': a version is numbers with dots, as in %s@%s",
			lang, manifest->name, manifest->preferred[0] ? manifest->preferred : "1.2");
	snprintf(ret_version, RUNTIME_VERSION_SIZE, "%s", at ? at + 1 : "");
	*ret_manifest = manifest;
	return 0;
}
