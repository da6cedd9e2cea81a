/* SPDX-License-Identifier: Apache-2.0 */
#include "backend.h"

#include "base/auto.h"

static const struct backend *const backends[] = {
	&backend_jail,
};

const struct backend *backend_find(uint32_t tier)
{
	for (size_t i = 0; i < ARRAY_LEN(backends); i++)
		if (backends[i]->tier == tier)
			return backends[i];
	return NULL;
}
