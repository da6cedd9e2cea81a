/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "runtime/cache.h"

#include <errno.h>
#include <sys/stat.h>

#define GOOD                                                                                       \
	"cay-runtimes\t2\t7\t8\ndir\t-1\t/none\n"                                                  \
	"exe\tpython\t-us\t1\t2\t3\t-4\t5\t/k\t3.12.1\t/e\t/p\tsite\t\nend\n"

#define LONG "0123456789012345678901234567890123456789"

static struct findings findings;

static int parse(const char *text)
{
	static char copy[8192];

	findings_finish(&findings);
	CHECK_INT(findings_init(&findings), 0);
	snprintf(copy, sizeof(copy), "%s", text);
	return cache_parse(copy, strlen(copy), &findings);
}

TEST(a_cache_is_read)
{
	CHECK_INT(parse(GOOD), 0);
	CHECK_INT((long long)findings.environment, 7);
	CHECK_INT((long long)findings.manifests, 8);
	CHECK_INT((long long)findings.places.count, 1);
	CHECK(places_are_unchanged(&findings.places));
	const struct found *found = findings_get(&findings, "python", "/k");
	CHECK(found && found->runtime.usable && found->runtime.shared && !found->hidden);
	CHECK_INT(found->identity.mtime_ns, -4);
	CHECK_STR(found->runtime.version, "3.12.1");
	CHECK(findings_get(&findings, "node", "/k") == NULL);
}

TEST(a_cache_that_is_odd_is_refused)
{
	static const char *const bad[] = {
		"",
		"end\n",
		"cay-runtimes\t1\t7\t8\nend\n",
		"cay-runtimes\t2\t7\nend\n",
		"cay-runtimes\t2\t7\t8\n",
		"cay-runtimes\t2\t7\t8\nend\nend\n",
		"cay-runtimes\t2\t7\t8\nend",
		"cay-runtimes\t2\t-7\t8\nend\n",
		"cay-runtimes\t2\t7\t8\ndir\t1\trelative\nend\n",
		"cay-runtimes\t2\t7\t8\ndir\t1x\t/a\nend\n",
		"cay-runtimes\t2\t7\t8\nexe\tpython\nend\n",
		"cay-runtimes\t2\t7\t8\nexe\tp\t-\t1\t2\t3\t4\t5\t/k\t1\t/e\t/p\ts\t\tmore\nend\n",
		"cay-runtimes\t2\t7\t8\nexe\t" LONG "\t-\t1\t2\t3\t4\t5\t/k\t1\t/e\t/p\ts\t\nend\n",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(parse(bad[i]), -EINVAL);
}

TEST(a_cache_is_written_as_it_is_read)
{
	char state[] = "/tmp/cay-cache-XXXXXX", path[64];
	struct findings again;
	struct stat st;

	CHECK(mkdtemp(state) != NULL);
	CHECK_INT(parse(GOOD), 0);
	CHECK_INT(cache_save(state, &findings), 0);
	CHECK_INT(findings_init(&again), 0);
	CHECK_INT(cache_load(state, &again), 0);
	CHECK_INT((long long)again.count, 1);
	CHECK(memcmp(&again.items[0], &findings.items[0], sizeof(struct found)) == 0);
	snprintf(path, sizeof(path), "%s/runtimes.cache", state);
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_mode & 0777, 0600);

	/* What has a tab in it, or may pass, is not remembered. */
	snprintf(findings.items[0].key, sizeof(findings.items[0].key), "/a\tb");
	CHECK_INT(cache_save(state, &findings), 0);
	findings_finish(&again);
	CHECK_INT(findings_init(&again), 0);
	CHECK_INT(cache_load(state, &again), 0);
	CHECK_INT((long long)again.count, 0);
	findings_finish(&again);
	unlink(path);
	CHECK_INT(rmdir(state), 0);
}
