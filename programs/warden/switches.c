/* SPDX-License-Identifier: Apache-2.0 */
#include "switches.h"

#include "plan.h"

#include "base/auto.h"

#include <string.h>

#ifdef CAY_LAYER_SWITCHES
uint32_t switches_without(void)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} names[] = {
		{ "seccomp", WITHOUT_SECCOMP }, { "landlock", WITHOUT_LANDLOCK },
		{ "caps", WITHOUT_CAPS },       { "mounts", WITHOUT_MOUNTS },
		{ "userns", WITHOUT_USERNS },   { "rlimits", WITHOUT_RLIMITS },
	};
	const char *asked = getenv("CAY_TEST_WITHOUT");

	for (size_t i = 0; asked && i < ARRAY_LEN(names); i++)
		if (strcmp(asked, names[i].name) == 0)
			return names[i].bit;
	return 0;
}
#endif
