/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup_probe.c - which hierarchies this host has and where in them we may build. */
#include "cgroup.h"

#include "cgroup_parse.h"

#include "base/auto.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Controllers as v2 names them in cgroup.controllers; it freezes and counts cpu without one. */
static const char *const names[CTLS_] = {
	[CTL_MEMORY] = "memory",
	[CTL_PIDS] = "pids",
	[CTL_CPU] = "cpu",
	[CTL_IO] = "io",
};

#define TEXT_MAX 65536

/* May we make directories and, in v2, do children get the controllers? */
static bool is_usable(int fd)
{
	return faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0 &&
	       faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) == 0;
}

static unsigned listed_in(int fd, const char *file)
{
	char text[512];
	unsigned found = 0;

	if (fd_read_text_at(fd, file, text, sizeof(text)) < 0)
		return 0;
	for (unsigned c = 0; c < CTLS_; c++)
		if (names[c] && cgroup_has_word(text, names[c]))
			found |= 1u << c;
	return found;
}

static unsigned enabled_in(int fd)
{
	return listed_in(fd, "cgroup.subtree_control");
}

/* A cgroup that was delegated to us may not have its controllers handed down yet.  This works
 * only where no process sits in it; then the next ancestor is tried. */
static void enable_in(int fd)
{
	static const char *const wanted[] = { "+memory", "+pids", "+cpu", "+io" };

	/* Writing waits for cgroups that are just ending: not where there is nothing to gain, as in
	 * the bare v2 of a hybrid host. */
	if (!(listed_in(fd, "cgroup.controllers") & ~enabled_in(fd)))
		return;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		(void)fd_write_text_at(fd, "cgroup.subtree_control", wanted[i]);
}

#define NEEDED (1u << CTL_MEMORY | 1u << CTL_PIDS | 1u << CTL_CPU)

/* Memory is worth more than all others: without it we would not use cgroups at all. */
static int worth(unsigned controllers)
{
	return __builtin_popcount(controllers & NEEDED) +
	       (controllers & 1u << CTL_MEMORY ? CTLS_ : 0);
}

/* From our own cgroup upwards: the first that we may build in and that hands down memory, pids
 * and cpu; else the one that hands down the most of them. */
static void find_v2(struct cgroup_host *host, const char *mount, const char *own)
{
	char path[512];
	unsigned best = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s%s", mount, own) >= sizeof(path))
		return;
	for (;;) {
		auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && is_usable(fd)) {
			if ((enabled_in(fd) & NEEDED) != NEEDED)
				enable_in(fd);
			unsigned found = enabled_in(fd) & (NEEDED | 1u << CTL_IO);
			if (worth(found) > worth(best)) {
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
}

static void add_v1(struct cgroup_host *host, unsigned controllers, const char *mount,
		   const char *own)
{
	struct cgroup_hierarchy *h = &host->at[host->n];

	if ((size_t)snprintf(h->base, sizeof(h->base), "%s%s", mount, own) >= sizeof(h->base))
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

static void use(struct cgroup_host *host, const struct cgroup_place *place)
{
	unsigned seen = 0;

	for (size_t i = 0; i < host->n; i++)
		seen |= host->at[i].controllers;
	if (place->version == 2 && host->n == 0)
		find_v2(host, place->mount, place->own);
	if (place->version == 1 && (place->controllers & ~seen) && host->n < CTLS_)
		add_v1(host, place->controllers & ~seen, place->mount, place->own);
}

static bool has_memory(const struct cgroup_host *host)
{
	for (size_t i = 0; i < host->n; i++)
		if (host->at[i].controllers & 1u << CTL_MEMORY)
			return true;
	return false;
}

void cgroup_probe_texts(struct cgroup_host *host, const char *group, const char *mounts,
			const char *cgroups)
{
	struct cgroup_place places[CGROUP_PLACES_MAX];
	size_t n = cgroup_parse(mounts, cgroups, places);

	*host = (struct cgroup_host){ 0 };
	snprintf(host->group, sizeof(host->group), "%s", group);
	for (uint32_t version = 2; version >= 1; version--) {
		for (size_t i = 0; i < n; i++)
			if (places[i].version == version)
				use(host, &places[i]);
		if (has_memory(host)) {
			host->version = version;
			return;
		}
		cgroup_probe_finish(host);
	}
	snprintf(host->why, sizeof(host->why),
		 "no cgroup here lets us make one with memory and pids");
}

void cgroup_probe(struct cgroup_host *host, const char *group)
{
	auto_free char *mounts = malloc(TEXT_MAX);
	char cgroups[16384];

	if (mounts && fd_read_text_at(AT_FDCWD, "/proc/self/mountinfo", mounts, TEXT_MAX) > 0 &&
	    fd_read_text_at(AT_FDCWD, "/proc/self/cgroup", cgroups, sizeof(cgroups)) > 0) {
		cgroup_probe_texts(host, group, mounts, cgroups);
		return;
	}
	*host = (struct cgroup_host){ .why = "/proc/self does not tell our cgroup" };
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
