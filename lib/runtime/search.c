/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/search.h"

#include "base/auto.h"
#include "runtime/manifest.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MATCHES_MAX 64 /* names that one `*` stands for */

struct search {
	const struct manifest *manifest;
	struct places *places;
	search_fn on_candidate;
	void *arg;
	bool ended;
};

static const char *const variables[] = {
	"PATH",          "HOME",    "PYENV_ROOT", "ASDF_DATA_DIR",
	"MISE_DATA_DIR", "NVM_DIR", "FNM_DIR",    "VOLTA_HOME",
};

uint64_t search_environment(void)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		const char *value = getenv(variables[i]);
		/* The end counts too, so that a byte cannot wander from one to the next. */
		for (const char *c = value ? value : "";; c++) {
			hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
			if (!*c)
				break;
		}
	}
	return hash;
}

static int64_t mtime_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return -1;
	return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

void places_finish(struct places *places)
{
	for (size_t i = 0; i < places->count; i++)
		free(places->items[i].path);
	places->count = 0;
}

bool places_are_unchanged(const struct places *places)
{
	for (size_t i = 0; i < places->count; i++)
		if (mtime_of(places->items[i].path) != places->items[i].mtime_ns)
			return false;
	return true;
}

bool places_add(struct places *places, const char *path, int64_t mtime_ns)
{
	char *copy = places->count < PLACES_MAX ? strdup(path) : NULL;

	if (!copy)
		return false;
	places->items[places->count++] = (struct place){ copy, mtime_ns };
	return true;
}

/* Remembers a directory; true when it is there and may be looked into. */
static bool visit(struct places *places, const char *path)
{
	for (size_t i = 0; i < places->count; i++)
		if (strcmp(places->items[i].path, path) == 0)
			return places->items[i].mtime_ns >= 0;
	/* The time is taken before the look: what changes meanwhile is seen next time. */
	int64_t mtime_ns = mtime_of(path);
	return places_add(places, path, mtime_ns) && mtime_ns >= 0;
}

static void look_into(struct search *search, const char *dir)
{
	const char *at = search->manifest->commands;
	char path[PATH_MAX], real[PATH_MAX], command[64];

	if (!visit(search->places, dir))
		return;
	while (!search->ended && words_next(&at, command, sizeof(command))) {
		if (snprintf(path, sizeof(path), "%s/%s", dir, command) >= (int)sizeof(path))
			continue;
		if (realpath(path, real))
			search->ended = search->on_candidate(search->arg, path, real);
	}
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Puts names in the place of the first "*" component, or looks into what has none. */
static void expand(struct search *search, const char *pattern, int depth)
{
	const char *star = strstr(pattern, "/*");

	while (star && star[2] != '/' && star[2] != '\0')
		star = strstr(star + 2, "/*");
	if (!star) {
		look_into(search, pattern);
		return;
	}
	char parent[PATH_MAX], next[PATH_MAX];
	snprintf(parent, sizeof(parent), "%.*s", (int)(star - pattern), pattern);
	if (depth == 0 || !visit(search->places, parent))
		return;

	struct dirent **entries;
	/* Sorted, so that two looks at the same host agree. */
	int count = scandir(parent, &entries, is_visible, versionsort);
	for (int i = 0; i < count; i++) {
		int len = snprintf(next, sizeof(next), "%s/%s%s", parent, entries[i]->d_name,
				   star + 2);
		if (i < MATCHES_MAX && len < (int)sizeof(next) && !search->ended)
			expand(search, next, depth - 1);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

static void look_into_path(struct search *search)
{
	const char *path = getenv("PATH");
	char dir[PATH_MAX];

	while (path && *path && !search->ended) {
		size_t len = strcspn(path, ":");
		/* "." and other relative ones depend on where we stand: never. */
		if (path[0] == '/' && len < sizeof(dir)) {
			snprintf(dir, sizeof(dir), "%.*s", (int)len, path);
			look_into(search, dir);
		}
		path += len + (path[len] == ':');
	}
}

static void look_at_place(struct search *search, const char *place)
{
	char name[32], pattern[PATH_MAX];

	if (strcmp(place, "$PATH") == 0) {
		look_into_path(search);
		return;
	}
	size_t head = place[0] == '~' || place[0] == '$' ? strcspn(place, "/") : 0;
	const char *start = "";
	if (head > 0) {
		snprintf(name, sizeof(name), "%.*s", (int)head - 1, place + 1);
		start = getenv(place[0] == '~' ? "HOME" : name);
	}
	if (start &&
	    snprintf(pattern, sizeof(pattern), "%s%s", start, place + head) <
		    (int)sizeof(pattern) &&
	    pattern[0] == '/' && !strchr(start, '*'))
		expand(search, pattern, 3);
}

void search_manifest(const struct manifest *manifest, struct places *places, search_fn on_candidate,
		     void *arg)
{
	struct search search = { manifest, places, on_candidate, arg, false };
	const char *at = manifest->search;
	char place[PATH_MAX];

	while (!search.ended && lines_next(&at, place, sizeof(place)))
		look_at_place(&search, place);
}
