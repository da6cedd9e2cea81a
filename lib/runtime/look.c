/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking: every candidate is found, asked once and judged. */
#include "base/auto.h"
#include "base/err.h"
#include "runtime/prefix.h"
#include "runtime/probe.h"
#include "runtime/set.h"
#include "runtime/version.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct look {
	const struct manifest *manifest;
	const struct findings *before; /* what was known; may be empty */
	struct findings *now;
};

static bool on_candidate(void *arg, const char *path, const char *real);

static void set_why(struct runtime *runtime, const char *what, const struct err *err)
{
	runtime->usable = false;
	snprintf(runtime->why, sizeof(runtime->why), "%s%.300s", what, err->text);
}

/* Where libraries go, below the directory that a layer is laid over. */
static void set_site(struct runtime *runtime, const char *site)
{
	const char *root = prefix_is_in_usr(runtime->prefix) ? "/usr" : runtime->prefix;
	size_t len = strlen(root);

	if (path_is_in(site, root) && site[len] == '/' &&
	    strlen(site + len + 1) < sizeof(runtime->site))
		snprintf(runtime->site, sizeof(runtime->site), "%s", site + len + 1);
}

/* Reasons that stay as long as the file does; those of the prefix are looked at each time. */
static void judge(struct runtime *runtime, const struct manifest *manifest,
		  const struct probe *probe)
{
	runtime->usable = false;
	if (!version_is_between(runtime->version, manifest->oldest, manifest->newest))
		snprintf(runtime->why, sizeof(runtime->why),
			 "version %s is not supported; %s to %s are", runtime->version,
			 manifest->oldest, manifest->newest);
	else if (probe->implementation[0] && strcmp(probe->implementation, "cpython") != 0)
		snprintf(runtime->why, sizeof(runtime->why), "%s is not supported; cpython is",
			 probe->implementation);
	else if (probe->outside[0])
		snprintf(runtime->why, sizeof(runtime->why),
			 "it needs '%.200s', which is neither in its prefix nor in /usr",
			 probe->outside);
	else
		runtime->usable = true;
}

/* Programs that tell nothing but a version are used where every sandbox has them. */
static void fill_plain(struct runtime *runtime, const char *real)
{
	static const char *const roots[] = { "/usr", "/bin" };

	snprintf(runtime->exe, sizeof(runtime->exe), "%s", real);
	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		if (path_is_in(real, roots[i]))
			snprintf(runtime->prefix, sizeof(runtime->prefix), "/usr");
}

static void ask(struct found *found, const struct manifest *manifest, const char *path,
		const char *real)
{
	struct runtime *runtime = &found->runtime;
	struct probe probe;
	struct err err;

	if (prefix_check_startable(real, &err) < 0) {
		found->retry = true; /* chmod and chown do not always change the file we compare */
		set_why(runtime, "", &err);
		return;
	}
	if (probe_ask(manifest->probe, path, &probe, &err) < 0) {
		found->retry = err.kind == ERR_TIMEOUT;
		/* A shim for a version that is not installed is not a runtime that is broken. */
		found->hidden = strstr(path, "/shims/") != NULL;
		set_why(runtime, "it could not be asked: ", &err);
		return;
	}
	memcpy(runtime->version, probe.version, sizeof(runtime->version));
	runtime->shared = probe.shared;
	if (probe.prefix[0]) {
		memcpy(runtime->exe, probe.exe, sizeof(runtime->exe));
		memcpy(runtime->prefix, probe.prefix, sizeof(runtime->prefix));
		set_site(runtime, probe.site);
	} else {
		fill_plain(runtime, real);
	}
	judge(runtime, manifest, &probe);
	if (!runtime->exe[0])
		snprintf(runtime->exe, sizeof(runtime->exe), "%s", real);
}

/* An answer that was given by the same file before. */
static bool recall(const struct findings *before, struct found *found)
{
	const struct found *old = findings_get(before, found->runtime.lang, found->key);

	if (!old || !identity_is_same(&old->identity, &found->identity))
		return false;
	*found = *old;
	return true;
}

static void add(struct look *look, const char *path, const char *real, const struct stat *st)
{
	struct found *found = &look->now->items[look->now->count];

	*found = (struct found){ .identity = identity_of(st) };
	snprintf(found->key, sizeof(found->key), "%s", real);
	snprintf(found->runtime.lang, sizeof(found->runtime.lang), "%s", look->manifest->name);
	snprintf(found->runtime.exe, sizeof(found->runtime.exe), "%s", real);
	look->now->count++; /* before it is asked, so that two shims cannot lead to each other */
	if (!recall(look->before, found))
		ask(found, look->manifest, path, real);
	if (strcmp(found->runtime.exe, found->key) != 0) {
		found->hidden = true;
		char target[PATH_MAX];
		if (realpath(found->runtime.exe, target))
			(void)on_candidate(look, target, target);
	}
}

static bool on_candidate(void *arg, const char *path, const char *real)
{
	struct look *look = arg;
	struct stat st;

	if (look->now->count == FOUND_MAX)
		return true;
	if (strlen(real) >= RUNTIME_PATH_SIZE)
		return false;
	if (findings_get(look->now, look->manifest->name, real))
		return false;
	if (stat(real, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111))
		add(look, path, real, &st);
	return false;
}

static int look_everywhere(struct runtimes *set, const struct findings *before,
			   struct findings *ret_now)
{
	int r = findings_init(ret_now);
	if (r < 0)
		return r;
	ret_now->environment = search_environment();
	ret_now->manifests = set->manifests.fingerprint;
	for (size_t i = 0; i < set->manifests.count; i++) {
		struct look look = { &set->manifests.items[i], before, ret_now };
		if (!look.manifest->runtime[0])
			search_manifest(look.manifest, &ret_now->places, on_candidate, &look);
	}
	return 0;
}

static void name_all(struct runtimes *set)
{
	for (size_t i = 0; i < set->findings.count; i++) {
		struct runtime *runtime = &set->findings.items[i].runtime;
		const struct manifest *manifest = manifests_find(&set->manifests, runtime->lang);
		char version[16];

		if (!manifest || !runtime->version[0])
			continue;
		version_cut(runtime->version, manifest->version_parts, version, sizeof(version));
		snprintf(runtime->name, sizeof(runtime->name), "%.12s%s%.15s", runtime->lang,
			 manifest->version_parts ? "@" : "",
			 manifest->version_parts ? version : "");
	}
}

static bool cache_holds(const struct runtimes *set, const struct findings *cached)
{
	return cached->environment == search_environment() &&
	       cached->manifests == set->manifests.fingerprint &&
	       places_are_unchanged(&cached->places);
}

static int load(const struct runtimes *set, struct findings *ret_findings)
{
	int r = findings_init(ret_findings);
	if (r < 0)
		return r;
	if (set->state_dir && cache_load(set->state_dir, ret_findings) == 0)
		return 0;
	findings_finish(ret_findings);
	return findings_init(ret_findings);
}

static void adopt(struct runtimes *set, struct findings *findings, bool fresh)
{
	findings_finish(&set->findings);
	set->findings = *findings;
	set->known = true;
	set->fresh = fresh;
	name_all(set);
}

int set_know(struct runtimes *set, struct err *err)
{
	struct findings cached;

	if (set->known)
		return 0;
	if (load(set, &cached) < 0)
		return err_errno(err, ENOMEM, "look for runtimes");
	if (cache_holds(set, &cached)) {
		adopt(set, &cached, false);
		return 0;
	}
	findings_finish(&cached);
	return set_look(set, err);
}

int set_look(struct runtimes *set, struct err *err)
{
	struct findings cached, now;

	if (set->fresh)
		return 0;
	if (load(set, &cached) < 0)
		return err_errno(err, ENOMEM, "look for runtimes");
	int r = look_everywhere(set, &cached, &now);
	findings_finish(&cached);
	if (r < 0)
		return err_errno(err, -r, "look for runtimes");
	/* Without a state directory it is looked again each time; nothing else is lost. */
	if (set->state_dir)
		(void)cache_save(set->state_dir, &now);
	adopt(set, &now, true);
	return 0;
}
