/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup_parse.h - what /proc/self/mountinfo and /proc/self/cgroup say about cgroups.
 *
 * Texts in, places out; looks at nothing else.  In a container both are what its maker chose. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A hierarchy that is mounted, and where in it we are. */
struct cgroup_place {
	uint32_t version;     /* 1 or 2 */
	unsigned controllers; /* v1: bits 1 << enum controller */
	char mount[512];
	char own[512]; /* below mount: "" or "/a/b" */
};

#define CGROUP_PLACES_MAX 24

/* Returns the number of places.  A line that makes no sense is left out. */
size_t cgroup_parse(const char *mounts, const char *cgroups,
		    struct cgroup_place ret_places[CGROUP_PLACES_MAX]);

/* Is the word in a list separated by commas, blanks or newlines? */
bool cgroup_has_word(const char *list, const char *word);
