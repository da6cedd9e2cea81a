/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"
#include "cgroup_parse.h"

#include "warden_fixture.h"

#define BIT(controller) (1u << (controller))

static struct cgroup_place places[CGROUP_PLACES_MAX];
static struct cgroup_host host;

static const char v1_mounts[] =
	"22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
	"31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup "
	"rw,cpu,cpuacct\n"
	"33 31 0:30 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory\n"
	"34 31 0:31 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
	"35 31 0:32 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
	"36 31 0:33 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";
static const char v1_cgroups[] = "9:name=systemd:/user.slice\n8:pids:/user.slice/a\n"
				 "4:memory:/process/42\n3:freezer:/\n2:cpu,cpuacct:/x:y\n0::/\n";

TEST(parse_v1_finds_each_hierarchy_and_our_place_in_it)
{
	CHECK_INT(cgroup_parse(v1_mounts, v1_cgroups, places), 4);
	CHECK_INT(places[0].version, 1);
	CHECK_INT(places[0].controllers, BIT(CTL_CPU) | BIT(CTL_CPUACCT));
	CHECK_STR(places[0].mount, "/sys/fs/cgroup/cpu,cpuacct");
	CHECK_STR(places[0].own, "/x:y");
	CHECK_INT(places[1].controllers, BIT(CTL_MEMORY));
	CHECK_STR(places[1].own, "/process/42");
	CHECK_INT(places[2].controllers, BIT(CTL_PIDS));
	CHECK_STR(places[2].own, "/user.slice/a");
	CHECK_INT(places[3].controllers, BIT(CTL_FREEZER));
	CHECK_STR(places[3].own, "");
}

TEST(parse_v2_finds_the_one_hierarchy)
{
	CHECK_INT(cgroup_parse("30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
			       "0::/user.slice/user-1000.slice\n", places),
		  1);
	CHECK_INT(places[0].version, 2);
	CHECK_STR(places[0].mount, "/sys/fs/cgroup");
	CHECK_STR(places[0].own, "/user.slice/user-1000.slice");
}

TEST(parse_hybrid_finds_both)
{
	CHECK_INT(cgroup_parse("41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
			       "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
			       "4:memory:/a\n0::/b", places),
		  2);
	CHECK_INT(places[0].version, 2);
	CHECK_STR(places[0].own, "/b");
	CHECK_INT(places[1].version, 1);
	CHECK_STR(places[1].own, "/a");
}

TEST(parse_in_a_container_sees_its_part_only)
{
	static const struct {
		const char *root, *own, *want;
	} cases[] = {
		{ "/docker/abc", "/docker/abc", "" },
		{ "/docker/abc", "/docker/abc/job", "/job" },
		{ "/docker/abc", "/docker/abcd", "/docker/abcd" }, /* a brother, not a child */
		{ "/docker/abc", "/", "" },
		{ "/", "/", "" },
		{ "/", "/../../other", "" }, /* outside of our cgroup namespace */
		{ "/..", "/", "" },
	};
	char mounts[256], cgroups[128];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(mounts, sizeof(mounts), "33 31 0:30 %s /cg rw - cgroup cgroup rw,memory\n",
			 cases[i].root);
		snprintf(cgroups, sizeof(cgroups), "4:memory:%s\n", cases[i].own);
		CHECK_INT(cgroup_parse(mounts, cgroups, places), 1);
		CHECK_STR(places[0].own, cases[i].want);
	}
}

TEST(parse_leaves_out_what_makes_no_sense)
{
	static const char *const mounts[] = {
		"",
		"\n\n\n",
		"garbage",
		" - cgroup2 x rw",
		"1 2 3 4 5",
		"30 22 0:26 / /cg rw - cgroup2",
		"30 22 0:26 / relative rw - cgroup2 cgroup2 rw",
		"30 22\n0:26 / /cg rw - cgroup2 cgroup2 rw", /* one line does not borrow from the
								next */
		"30 22 0:26 / /cg rw - ext4 cgroup2 memory",
		"30 22 0:26 / /cg rw - cgroup cgroup rw,memory2",
	};
	static const char *const cgroups[] = {
		"", "0", "0:", "0::", "0::relative", "\n:\n::\n", "4:memory\n:/x"
	};

	for (size_t i = 0; i < ARRAY_LEN(mounts); i++)
		CHECK_INT(cgroup_parse(mounts[i], "4:memory:/\n0::/\n", places), 0);
	for (size_t i = 0; i < ARRAY_LEN(cgroups); i++)
		CHECK_INT(cgroup_parse("30 22 0:26 / /cg rw - cgroup2 cgroup2 rw\n", cgroups[i],
				       places),
			  0);
}

TEST(parse_bounds_names_and_numbers)
{
	static char mounts[200000], cgroups[4096];
	size_t len = 0;

	for (int i = 0; i < 1000; i++)
		len += (size_t)snprintf(mounts + len, sizeof(mounts) - len,
					"1 2 0:1 / /cg%d rw - cgroup2 x rw\n", i);
	CHECK_INT(cgroup_parse(mounts, "0::/\n", places), CGROUP_PLACES_MAX);
	memset(cgroups, 'x', sizeof(cgroups) - 1);
	memcpy(cgroups, "0::/", 4);
	CHECK_INT(cgroup_parse(mounts, cgroups, places), 0);
	cgroups[600] = '\0'; /* longer than a place can be */
	CHECK_INT(cgroup_parse(mounts, cgroups, places), 0);
}

/* A directory with the files that the probe looks at; the kernel's own are for test_cgroup. */
static void make_cgroup(int dir, const char *path, const char *controllers)
{
	char file[128];

	CHECK_INT(path_make_dirs(dir, path, 0755), 0);
	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	make_file(dir, file, "", 0644);
	snprintf(file, sizeof(file), "%s/cgroup.subtree_control", path);
	make_file(dir, file, controllers, 0444); /* a file would take what the kernel refuses */
}

static void probe(const char *type, const char *options, const char *cgroups)
{
	char mounts[256];

	snprintf(mounts, sizeof(mounts), "30 22 0:26 / %s/cg rw - %s cgroup rw%s\n", tmp_path, type,
		 options);
	cgroup_probe_texts(&host, "cay-test", mounts, cgroups);
}

static void probe_v2(void)
{
	if (is_root() && (setegid(65534) < 0 || seteuid(65534) < 0))
		SKIP("cannot become nobody");
	int dir = open(tmp_path, O_RDONLY | O_DIRECTORY);
	char want[64];

	make_cgroup(dir, "cg", "memory pids cpu io\n");
	make_cgroup(dir, "cg/a", "memory pids cpu\n");
	make_cgroup(dir, "cg/a/b", "pids\n");
	make_cgroup(dir, "cg/a/b/c", "\n");
	probe("cgroup2", "", "0::/a/b/c\n");
	CHECK_INT(host.version, 2);
	CHECK_INT(host.n, 1);
	snprintf(want, sizeof(want), "%s/cg/a", tmp_path);
	CHECK_STR(host.at[0].base, want);
	CHECK_INT(host.at[0].controllers & BIT(CTL_IO), 0);
	CHECK(host.at[0].controllers & BIT(CTL_FREEZER));
	CHECK_STR(host.group, "cay-test");
	cgroup_probe_finish(&host);

	/* The best that there is, even if not all; without memory it is of no use. */
	make_file(dir, "cg/a/cgroup.subtree_control", "memory\n", 0444);
	make_file(dir, "cg/cgroup.subtree_control", "memory\n", 0444);
	make_file(dir, "cg/a/b/cgroup.subtree_control", "pids cpu\n", 0444);
	probe("cgroup2", "", "0::/a/b/c\n");
	CHECK_INT(host.version, 2);
	CHECK_STR(host.at[0].base, want);
	cgroup_probe_finish(&host);

	/* Nobody may build there. */
	make_file(dir, "cg/cgroup.subtree_control", "memory pids cpu\n", 0444);
	CHECK_INT(fchmodat(dir, "cg/cgroup.procs", 0444, 0), 0);
	probe("cgroup2", "", "0::/\n");
	CHECK_INT(host.version, 0);
	CHECK_INT(host.n, 0);
	CHECK(host.why[0] != '\0');
}

TEST(probe_v2_takes_the_nearest_ancestor_that_hands_down_enough)
{
	int dir = tmp_make();

	CHECK_INT(fchmod(dir, 0777), 0);
	in_child(probe_v2);
	tmp_finish();
}

TEST(probe_v1_needs_memory)
{
	int dir = tmp_make();

	make_cgroup(dir, "cg/own", "");
	probe("cgroup", ",memory,pids", "4:memory,pids:/own\n");
	CHECK_INT(host.version, 1);
	CHECK_INT(host.at[0].controllers, BIT(CTL_MEMORY) | BIT(CTL_PIDS));
	cgroup_probe_finish(&host);
	probe("cgroup", ",pids", "4:pids:/own\n");
	CHECK_INT(host.version, 0);
	CHECK_STR(host.why, "no cgroup here lets us make one with memory and pids");
	cgroup_probe_texts(&host, "cay-test", "", "");
	CHECK_INT(host.version, 0);
	tmp_finish();
}

TEST(probe_uses_a_controller_once)
{
	int dir = tmp_make();
	char mounts[512];

	make_cgroup(dir, "cg", "");
	make_cgroup(dir, "again", "");
	snprintf(mounts, sizeof(mounts),
		 "30 22 0:26 / %s/cg rw - cgroup x rw,memory\n"
		 "31 22 0:26 / %s/again rw - cgroup x rw,memory\n"
		 "32 22 0:26 / %s/again rw - cgroup x rw,memory,pids\n",
		 tmp_path, tmp_path, tmp_path);
	cgroup_probe_texts(&host, "cay-test", mounts, "4:memory:/\n5:pids:/\n");
	CHECK_INT(host.n, 2);
	CHECK_INT(host.at[0].controllers, BIT(CTL_MEMORY));
	CHECK_INT(host.at[1].controllers, BIT(CTL_PIDS));
	cgroup_probe_finish(&host);
	tmp_finish();
}

TEST(probe_of_this_machine_never_fails)
{
	cgroup_probe(&host, "cay-unit-test");
	CHECK(host.version <= 2);
	CHECK((host.version == 0) == (host.why[0] != '\0'));
	for (size_t i = 0; i < host.n; i++)
		CHECK(host.at[i].base_fd >= 0);
	cgroup_probe_finish(&host);
	CHECK_INT(host.n, 0);
}
