/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup_parse.h"

#include "cgroup.h"

#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 2048

/* As v1 names its controllers in mount options. */
static const char *const names[CTLS_] = {
	[CTL_MEMORY] = "memory",   [CTL_PIDS] = "pids",       [CTL_CPU] = "cpu",
	[CTL_FREEZER] = "freezer", [CTL_CPUACCT] = "cpuacct", [CTL_IO] = "blkio",
};

bool cgroup_has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (*list) {
		size_t n = strcspn(list, ", \n");
		if (n == len && memcmp(list, word, n) == 0)
			return true;
		list += n;
		list += strspn(list, ", \n");
	}
	return false;
}

/* Copies the line at *at without its end and steps behind it.  One that is too long is empty. */
static bool next_line(const char **at, char ret_line[LINE_MAX_BYTES])
{
	size_t len = strcspn(*at, "\n");

	if (!**at)
		return false;
	size_t kept = len < LINE_MAX_BYTES ? len : 0;
	memcpy(ret_line, *at, kept);
	ret_line[kept] = '\0';
	*at += len + ((*at)[len] == '\n');
	return true;
}

/* Our own path in a hierarchy: the line "N:controllers:path"; controllers is empty for v2. */
static bool own_path(const char *cgroups, const char *controller, char *ret_path, size_t size)
{
	char line[LINE_MAX_BYTES];

	while (next_line(&cgroups, line)) {
		char *list = strchr(line, ':');
		char *path = list ? strchr(list + 1, ':') : NULL;
		if (!path || path[1] != '/')
			continue;
		*list++ = '\0';
		*path++ = '\0';
		if (controller ? cgroup_has_word(list, controller) : list[0] == '\0')
			return (size_t)snprintf(ret_path, size, "%s", path) < size;
	}
	return false;
}

/* "id parent dev root mountpoint options ... - type source super" */
static bool parse_mount(const char *line, char *ret_root, char *ret_point, char *ret_type,
			char *ret_super)
{
	const char *dash = strstr(line, " - ");

	return dash && sscanf(line, "%*d %*d %*s %511s %511s", ret_root, ret_point) == 2 &&
	       sscanf(dash, " - %63s %*s %511s", ret_type, ret_super) == 2 && ret_point[0] == '/';
}

/* Inside a cgroup namespace or a container the mount shows only a part of the tree. */
static const char *below_root(const char *own, const char *root)
{
	size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(own, root, len) == 0 && (own[len] == '/' || own[len] == '\0'))
		own += len;
	/* "/../x": we are outside of what our cgroup namespace may see. */
	return strcmp(own, "/") == 0 || strncmp(own, "/..", 3) == 0 ? "" : own;
}

static unsigned find_controllers(const char *cgroups, const char *super, char *ret_own, size_t size)
{
	unsigned found = 0;

	for (unsigned c = 0; c < CTLS_; c++)
		if (cgroup_has_word(super, names[c]) && own_path(cgroups, names[c], ret_own, size))
			found |= 1u << c;
	return found;
}

size_t cgroup_parse(const char *mounts, const char *cgroups,
		    struct cgroup_place ret_places[CGROUP_PLACES_MAX])
{
	char line[LINE_MAX_BYTES], root[512], type[64], super[512], own[512];
	size_t n = 0;

	while (n < CGROUP_PLACES_MAX && next_line(&mounts, line)) {
		struct cgroup_place *place = &ret_places[n];
		*place = (struct cgroup_place){ 0 };
		if (!parse_mount(line, root, place->mount, type, super))
			continue;
		if (strcmp(type, "cgroup2") == 0 && own_path(cgroups, NULL, own, sizeof(own)))
			place->version = 2;
		if (strcmp(type, "cgroup") == 0)
			place->controllers = find_controllers(cgroups, super, own, sizeof(own));
		if (place->controllers)
			place->version = 1;
		if (!place->version)
			continue;
		snprintf(place->own, sizeof(place->own), "%s", below_root(own, root));
		n++;
	}
	return n;
}
