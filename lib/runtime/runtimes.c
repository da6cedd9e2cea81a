/* SPDX-License-Identifier: Apache-2.0 */
#include "base/auto.h"
#include "base/err.h"
#include "runtime/layers.h"
#include "runtime/prefix.h"
#include "runtime/set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int runtimes_find_dir(char ret_dir[static PATH_MAX], struct err *err)
{
	/* Beside us in a build tree's top, two folders up in it, and where install puts them. */
	static const char *const places[] = { "/runtimes", "/../../runtimes",
					      "/../share/cay/runtimes" };
	char self[PATH_MAX], path[PATH_MAX];
	struct stat st;

	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return err_errno(err, errno, "read '/proc/self/exe'");
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		int len = snprintf(path, sizeof(path), "%s%s/python.manifest", self, places[i]);
		if (len >= (int)sizeof(path) || stat(path, &st) < 0)
			continue;
		*strrchr(path, '/') = '\0';
		memcpy(ret_dir, path, sizeof(path));
		return 0;
	}
	return err_make(err, ERR_NOT_FOUND,
			"the manifests of runtimes are neither in '%s/runtimes' nor in "
			"'%s/../share/cay/runtimes'",
			self, self);
}

int runtimes_open(const char *state_dir, const char *manifest_dir, struct runtimes **ret_runtimes,
		  struct err *err)
{
	struct runtimes *set = calloc(1, sizeof(*set));
	int r;

	if (!set)
		return err_errno(err, ENOMEM, "read manifests");
	set->state_dir = state_dir;
	if (!manifest_dir)
		r = runtimes_find_dir(set->dir, err);
	else if (snprintf(set->dir, sizeof(set->dir), "%s", manifest_dir) < (int)sizeof(set->dir))
		r = 0;
	else
		r = err_make(err, ERR_INVALID, "the path of the manifests is too long");
	if (r == 0)
		r = manifests_read(set->dir, &set->manifests, err);
	if (r < 0) {
		runtimes_close(set);
		return r;
	}
	*ret_runtimes = set;
	return 0;
}

void runtimes_close(struct runtimes *set)
{
	if (!set)
		return;
	findings_finish(&set->findings);
	manifests_finish(&set->manifests);
	free(set->list);
	free(set);
}

const char *runtimes_dir(const struct runtimes *set)
{
	return set->dir;
}

const char *runtimes_lang(const struct runtimes *set, size_t index, const char **ret_title)
{
	if (index >= set->manifests.count)
		return NULL;
	*ret_title = set->manifests.items[index].title;
	return set->manifests.items[index].name;
}

static void mark_unusable_prefixes(struct runtimes *set)
{
	for (size_t i = 0; i < set->findings.count; i++) {
		struct runtime *runtime = &set->findings.items[i].runtime;
		struct err err;

		if (!runtime->usable ||
		    prefix_check(runtime->prefix, runtime->exe, set->state_dir, &err) == 0)
			continue;
		runtime->usable = false;
		snprintf(runtime->why, sizeof(runtime->why), "%.380s", err.text);
	}
}

static void mark_defaults(struct runtimes *set)
{
	for (size_t i = 0; i < set->manifests.count; i++) {
		const struct manifest *manifest = &set->manifests.items[i];
		const struct found *found =
			manifest->runtime[0] ? NULL : set_pick(set, manifest, "");
		if (found)
			set->findings.items[found - set->findings.items].runtime.is_default = true;
	}
}

static void mark_layer(const struct runtimes *set, struct runtime *runtime)
{
	char path[PATH_MAX], digest[LAYERS_DIGEST_SIZE];

	if (set->state_dir && runtime->usable && runtime->site[0] &&
	    layers_find(set->state_dir, runtime, LAYERS_DATA, path, digest) == 0)
		snprintf(runtime->layer, sizeof(runtime->layer), LAYERS_DATA);
}

int runtimes_scan(struct runtimes *set, const struct runtime **ret_list, size_t *ret_count,
		  struct err *err)
{
	size_t count = 0;

	set->fresh = false;
	int r = set_look(set, err);
	if (r < 0)
		return r;
	mark_unusable_prefixes(set);
	mark_defaults(set);
	free(set->list);
	set->list = calloc(set->findings.count + 1, sizeof(*set->list));
	if (!set->list)
		return err_errno(err, ENOMEM, "list runtimes");
	for (size_t i = 0; i < set->findings.count; i++) {
		if (set->findings.items[i].hidden)
			continue;
		set->list[count] = set->findings.items[i].runtime;
		mark_layer(set, &set->list[count++]);
	}
	*ret_list = set->list;
	*ret_count = count;
	return 0;
}

void runtimes_explain(const struct runtimes *set, const char *lang,
		      char ret_text[static RUNTIME_WHY_SIZE])
{
	const struct manifest *manifest = manifests_find(&set->manifests, lang);
	struct err err;

	ret_text[0] = '\0';
	if (!manifest)
		return;
	set_refuse(set, manifest, "", &err);
	snprintf(ret_text, RUNTIME_WHY_SIZE, "%.380s", err.text);
}

int runtimes_find(struct runtimes *set, const char *lang, struct runtime *ret_runtime,
		  struct err *err)
{
	const struct manifest *manifest;
	char version[RUNTIME_VERSION_SIZE];

	int r = set_parse_lang(set, lang, &manifest, version, err);
	if (r < 0)
		return r;
	r = set_know(set, err);
	if (r < 0)
		return r;
	const struct found *found = set_pick(set, manifest, version);
	if (!found)
		return set_refuse(set, manifest, version, err);
	*ret_runtime = found->runtime;
	mark_layer(set, ret_runtime);
	return 0;
}
