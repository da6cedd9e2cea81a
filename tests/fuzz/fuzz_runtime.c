/* SPDX-License-Identifier: Apache-2.0
 *
 * What interpreters answer, first lines of scripts, and the cache of answers.  The first byte
 * says which of them follows. */
#include "base/err.h"
#include "runtime/cache.h"
#include "runtime/probe.h"
#include "runtime/shebang.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_cache(const uint8_t *data, size_t size)
{
	struct findings findings;
	char *copy = malloc(size + 1);

	if (!copy || findings_init(&findings) < 0)
		abort();
	memcpy(copy, data, size);
	copy[size] = '\0';
	if (cache_parse(copy, size, &findings) == 0)
		for (size_t i = 0; i < findings.count; i++)
			if (!findings_get(&findings, findings.items[i].runtime.lang,
					  findings.items[i].key))
				abort();
	findings_finish(&findings);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shebang shebang;
	struct probe probe;
	struct err err;

	if (size == 0)
		return 0;
	const char *text = (const char *)data + 1;
	if (data[0] == 'c')
		parse_cache(data + 1, size - 1);
	else if (data[0] == 'p' && probe_parse(text, size - 1, &probe, &err) == 0)
		return probe.prefix[0] && probe.prefix[0] != '/' ? abort(), 0 : 0;
	else if (data[0] == '#' && shebang_parse((const char *)data, size, &shebang))
		return shebang.name[0] ? 0 : (abort(), 0);
	return 0;
}
