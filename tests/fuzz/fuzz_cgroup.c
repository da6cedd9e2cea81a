/* SPDX-License-Identifier: Apache-2.0
 *
 * What the warden makes of /proc/self/mountinfo and /proc/self/cgroup, which in a container are
 * whatever its maker chose.  The input is the first text, a NUL byte, and the second. */
#include "cgroup.h"
#include "cgroup_parse.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *copy_text(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);

	if (!text)
		abort();
	memcpy(text, data, len);
	text[len] = '\0';
	return text;
}

static void look(const struct cgroup_place *place)
{
	if (place->version != 1 && place->version != 2)
		abort();
	if ((place->version == 1) != (place->controllers != 0) || place->controllers >> CTLS_)
		abort();
	if (!memchr(place->mount, 0, sizeof(place->mount)) || place->mount[0] != '/')
		abort();
	if (!memchr(place->own, 0, sizeof(place->own)) || (place->own[0] && place->own[0] != '/'))
		abort();
	if (strncmp(place->own, "/..", 3) == 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	size_t len = end ? (size_t)(end - data) : size;
	char *mounts = copy_text(data, len);
	char *cgroups = copy_text(data + (end ? len + 1 : size), end ? size - len - 1 : 0);
	struct cgroup_place places[CGROUP_PLACES_MAX];
	size_t n = cgroup_parse(mounts, cgroups, places);

	if (n > CGROUP_PLACES_MAX)
		abort();
	for (size_t i = 0; i < n; i++)
		look(&places[i]);
	free(cgroups);
	free(mounts);
	return 0;
}
