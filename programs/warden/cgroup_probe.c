/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup_probe.c - which hierarchies this host has and where in them we may build. */
#include "cgroup.h"

#include "base/auto.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Names of a controller: in v1's mount options and in v2's cgroup.controllers. */
static const struct {
	const char *v1, *v2;
} names[CTLS_] = {
	[CTL_MEMORY] = { "memory", "memory" }, [CTL_PIDS] = { "pids", "pids" },
	[CTL_CPU] = { "cpu", "cpu" },          [CTL_FREEZER] = { "freezer", NULL },
	[CTL_CPUACCT] = { "cpuacct", NULL },   [CTL_IO] = { "blkio", "io" },
};

#define TEXT_MAX 65536

/* Is the word in a list separated by commas, spaces or newlines? */
static bool has_word(const char *list, const char *word)
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

/* The warden's own path in the hierarchy: the line "N:controllers:path"; controllers is empty for
 * v2. */
static bool own_path(const char *cgroups, const char *controller, char *ret_path, size_t size)
{
	for (const char *line = cgroups; line && *line;) {
		const char *end = strchr(line, '\n');
		const char *list = strchr(line, ':');
		const char *path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			return false;
		char own[128];
		snprintf(own, sizeof(own), "%.*s", (int)(path - list - 1), list + 1);
		if (controller ? has_word(own, controller) : own[0] == '\0') {
			size_t len = end ? (size_t)(end - path - 1) : strlen(path + 1);
			return (size_t)snprintf(ret_path, size, "%.*s", (int)len, path + 1) < size;
		}
		line = end ? end + 1 : NULL;
	}
	return false;
}

/* May we make directories and, in v2, do children get the controllers? */
static bool is_usable(int fd)
{
	return faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0 &&
	       faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) == 0;
}

static unsigned enabled_in(int fd)
{
	char text[512];
	unsigned found = 0;

	if (fd_read_text_at(fd, "cgroup.subtree_control", text, sizeof(text)) < 0)
		return 0;
	for (unsigned c = 0; c < CTLS_; c++)
		if (names[c].v2 && has_word(text, names[c].v2))
			found |= 1u << c;
	return found;
}

/* A cgroup that was delegated to us may not have its controllers handed down yet.  This works
 * only where no process sits in it; then the next ancestor is tried. */
static void enable_in(int fd)
{
	static const char *const wanted[] = { "+memory", "+pids", "+cpu", "+io" };

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		(void)fd_write_text_at(fd, "cgroup.subtree_control", wanted[i]);
}

#define NEEDED (1u << CTL_MEMORY | 1u << CTL_PIDS | 1u << CTL_CPU)

/* From our own cgroup upwards: the first that we may build in and that hands down memory, pids
 * and cpu; else the one that hands down the most of them. */
static bool find_v2(struct cgroup_host *host, const char *mount, const char *own)
{
	char path[512];
	unsigned best = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s%s", mount, strcmp(own, "/") == 0 ? "" : own) >=
	    sizeof(path))
		return false;
	for (;;) {
		auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && is_usable(fd)) {
			if ((enabled_in(fd) & NEEDED) != NEEDED)
				enable_in(fd);
			unsigned found = enabled_in(fd) & (NEEDED | 1u << CTL_IO);
			if (__builtin_popcount(found & NEEDED) >
			    __builtin_popcount(best & NEEDED)) {
				best = found;
				struct cgroup_hierarchy *h = &host->at[0];
				if (host->n)
					drop_fd(&h->base_fd);
				host->n = 1;
				/* v2 freezes and counts cpu without a controller. */
				h->controllers = found | 1u << CTL_FREEZER | 1u << CTL_CPUACCT;
				h->base_fd = take_fd(&fd);
				memcpy(h->base, path, sizeof(path));
			}
		}
		char *slash = strrchr(path, '/');
		if ((best & NEEDED) == NEEDED || strlen(path) <= strlen(mount) || !slash)
			break;
		*slash = '\0';
	}
	return best & (1u << CTL_MEMORY);
}

static void add_v1(struct cgroup_host *host, unsigned controllers, const char *mount,
		   const char *own)
{
	struct cgroup_hierarchy *h = &host->at[host->n];

	if ((size_t)snprintf(h->base, sizeof(h->base), "%s%s", mount,
			     strcmp(own, "/") == 0 ? "" : own) >= sizeof(h->base))
		return;
	h->base_fd = open(h->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (h->base_fd < 0)
		return;
	if (!is_usable(h->base_fd)) {
		drop_fd(&h->base_fd);
		return;
	}
	h->controllers = controllers;
	host->n++;
}

/* A line of mountinfo: "id parent dev root mountpoint options ... - type source super". */
static bool parse_mount(const char *line, char *ret_root, char *ret_point, char *ret_type,
			char *ret_super)
{
	const char *dash = strstr(line, " - ");

	return dash && sscanf(line, "%*d %*d %*s %511s %511s", ret_root, ret_point) == 2 &&
	       sscanf(dash, " - %63s %*s %511s", ret_type, ret_super) == 2;
}

/* Inside a cgroup namespace or a container the mount shows only a part of the tree. */
static const char *below_root(const char *own, const char *root)
{
	size_t len = strlen(root);

	if (strcmp(root, "/") == 0 || strncmp(own, root, len) != 0)
		return own;
	return own[len] ? own + len : "/";
}

static void scan(struct cgroup_host *host, const char *mounts, const char *cgroups, int version)
{
	char root[512], point[512], type[64], super[512], own[512];

	for (const char *line = mounts; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!*line || !parse_mount(line, root, point, type, super))
			continue;
		if (version == 2 && strcmp(type, "cgroup2") == 0 && host->n == 0 &&
		    own_path(cgroups, NULL, own, sizeof(own))) {
			(void)find_v2(host, point, below_root(own, root));
			continue;
		}
		if (version != 1 || strcmp(type, "cgroup") != 0)
			continue;
		unsigned found = 0, seen = 0;
		for (size_t i = 0; i < host->n; i++)
			seen |= host->at[i].controllers;
		for (unsigned c = 0; c < CTLS_; c++)
			if (has_word(super, names[c].v1) && !(seen & 1u << c) &&
			    own_path(cgroups, names[c].v1, own, sizeof(own)))
				found |= 1u << c;
		if (found && host->n < CTLS_)
			add_v1(host, found, point, below_root(own, root));
	}
}

static bool has_memory(const struct cgroup_host *host)
{
	for (size_t i = 0; i < host->n; i++)
		if (host->at[i].controllers & 1u << CTL_MEMORY)
			return true;
	return false;
}

void cgroup_probe(struct cgroup_host *host, const char *group)
{
	auto_free char *mounts = malloc(TEXT_MAX);
	char cgroups[4096];

	*host = (struct cgroup_host){ 0 };
	snprintf(host->group, sizeof(host->group), "%s", group);
	if (!mounts || fd_read_text_at(AT_FDCWD, "/proc/self/mountinfo", mounts, TEXT_MAX) < 0 ||
	    fd_read_text_at(AT_FDCWD, "/proc/self/cgroup", cgroups, sizeof(cgroups)) < 0) {
		snprintf(host->why, sizeof(host->why), "/proc/self does not tell our cgroup");
		return;
	}
	for (int version = 2; version >= 1; version--) {
		scan(host, mounts, cgroups, version);
		if (has_memory(host)) {
			host->version = (uint32_t)version;
			return;
		}
		cgroup_probe_finish(host);
	}
	snprintf(host->why, sizeof(host->why),
		 "no cgroup here lets us make one with memory and pids");
}

void cgroup_probe_finish(struct cgroup_host *host)
{
	for (size_t i = 0; i < host->n; i++) {
		/* Shared with other wardens: it goes with the last of them. */
		(void)unlinkat(host->at[i].base_fd, host->group, AT_REMOVEDIR);
		drop_fd(&host->at[i].base_fd);
	}
	host->n = 0;
}
