/* SPDX-License-Identifier: Apache-2.0
 *
 * What `cay doctor` says about cgroups, for hosts of every kind. */
#include "doctor.h"

#include "base/auto.h"
#include "base/path.h"
#include "check.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static char tree[64];
static pid_t owner;

static void remove_tree(void)
{
	auto_close int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (getuid() == 0)
		CHECK_INT(seteuid(0), 0);
	if (getpid() == owner)
		(void)path_remove_tree(tmp, strrchr(tree, '/') + 1);
}

static struct host make_host(uid_t uid)
{
	(void)snprintf(tree, sizeof(tree), "/tmp/cay-doctor-XXXXXX");
	CHECK(mkdtemp(tree));
	owner = getpid();
	atexit(remove_tree);
	return (struct host){
		.root = open(tree, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.uid = uid,
		.user = "ada",
		.path = "",
		.state_dir = "/var/lib/cay",
	};
}

static void put(const struct host *host, const char *path, const char *text)
{
	char dir[PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = '\0';
	CHECK_INT(path_make_dirs(host->root, dir, 0755), 0);
	auto_close int fd =
		openat(host->root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static struct finding run(const struct host *host, const char *name)
{
	struct finding f = { 0 };

	doctor_find(name)->run(host, &f);
	return f;
}

/* One v2 cgroup with its three files. */
static void put_v2(const struct host *host, const char *dir, const char *controllers,
		   const char *handed_down, const char *procs)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "sys/fs/cgroup%s/cgroup.controllers", dir);
	put(host, path, controllers);
	(void)snprintf(path, sizeof(path), "sys/fs/cgroup%s/cgroup.subtree_control", dir);
	put(host, path, handed_down);
	(void)snprintf(path, sizeof(path), "sys/fs/cgroup%s/cgroup.procs", dir);
	put(host, path, procs);
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

/* Files of others are not writable: take away root's power to ignore that. */
static void become_nobody(void)
{
	CHECK_INT(setegid(65534) | seteuid(65534), 0);
}

TEST(a_host_without_cgroups_is_degraded_and_not_missing)
{
	struct host host = make_host(0);

	CHECK_STR(run(&host, "cgroup_version").found, "none");
	CHECK_INT(run(&host, "cgroup_version").status, DOCTOR_DEGRADED);
	CHECK_STR(run(&host, "cgroup_controllers").found, "none");
	CHECK_INT(run(&host, "cgroup_rights").status, DOCTOR_DEGRADED);
}

TEST(version_2_as_root_uses_the_nearest_cgroup_that_hands_down)
{
	struct host host = make_host(0);
	struct cgroup_view view;

	put(&host, "proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/a rw\n" V2_MOUNT);
	put(&host, "proc/self/cgroup", "0::/user.slice/session-1.scope\n");
	put_v2(&host, "", "cpu io memory pids", "cpu io memory pids", "1\n2\n3\n4\n5\n");
	put_v2(&host, "/user.slice", "cpu io memory pids", "", "");
	put_v2(&host, "/user.slice/session-1.scope", "cpu io memory pids", "", "4711\n");
	CHECK_STR(run(&host, "cgroup_version").found, "version 2");
	cgroup_view_read(&host, &view);
	CHECK(view.v2_rights);
	/* Our own is occupied and hands nothing down; the slice is free to. */
	CHECK_STR(view.v2_dir, "sys/fs/cgroup/user.slice");
	CHECK_INT(run(&host, "cgroup_controllers").status, DOCTOR_OK);
	CHECK_INT(run(&host, "cgroup_rights").status, DOCTOR_OK);
}

TEST(version_2_not_delegated_names_the_file_and_systemd_run)
{
	if (geteuid() != 0)
		SKIP("only root can make files that are not its own");
	struct host host = make_host(1000);

	put(&host, "proc/self/mountinfo", V2_MOUNT);
	put(&host, "proc/self/cgroup", "0::/user.slice/session-1.scope\n");
	put_v2(&host, "", "cpu io memory pids", "cpu io memory pids", "");
	put_v2(&host, "/user.slice/session-1.scope", "memory pids", "", "4711\n");
	CHECK_INT(fchmodat(host.root, "sys", 0755, 0) | chmod(tree, 0755), 0);
	become_nobody();
	struct finding f = run(&host, "cgroup_rights");
	CHECK_STR(f.found, "no write access to "
			   "'/sys/fs/cgroup/user.slice/session-1.scope/cgroup.procs'");
	CHECK_STR(f.mend, "systemd-run --user --scope -p Delegate=yes cay run ...");
	f = run(&host, "cgroup_controllers");
	CHECK_STR(f.found, "memory pids freezer");
	CHECK_INT(f.status, DOCTOR_DEGRADED);
	CHECK(strstr(f.mend, "Delegate=cpu io memory pids"));
}

static void put_v1(const struct host *host, const char *mount_root, const char *self)
{
	static const char *const names[] = { "memory", "cpu", "pids", "blkio", "freezer" };
	char mounts[2048] = "", cgroups[1024] = "";

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t len = strlen(mounts);
		(void)snprintf(mounts + len, sizeof(mounts) - len,
			       "3%zu 31 0:3%zu %s /sys/fs/cgroup/%s rw - cgroup cgroup rw,%s\n", i,
			       i, mount_root, names[i], names[i]);
		len = strlen(cgroups);
		(void)snprintf(cgroups + len, sizeof(cgroups) - len, "%zu:%s:%s\n", i + 1, names[i],
			       self);
		char path[PATH_MAX];
		(void)snprintf(path, sizeof(path), "sys/fs/cgroup/%s/job/cgroup.procs", names[i]);
		put(host, path, "1\n");
	}
	put(host, "proc/self/mountinfo", mounts);
	put(host, "proc/self/cgroup", cgroups);
}

TEST(version_1_has_a_directory_per_controller)
{
	struct host host = make_host(0);
	struct cgroup_view view;

	put_v1(&host, "/", "/job");
	cgroup_view_read(&host, &view);
	CHECK_STR(view.at[CG_IO].dir, "sys/fs/cgroup/blkio/job");
	CHECK_INT(view.at[CG_MEMORY].version, 1);
	CHECK_STR(run(&host, "cgroup_version").found, "version 1");
	CHECK_INT(run(&host, "cgroup_rights").status, DOCTOR_OK);
	host.uid = 1000;
	CHECK_INT(run(&host, "cgroup_version").status, DOCTOR_DEGRADED);
}

TEST(a_mount_that_shows_a_part_of_the_hierarchy_is_understood)
{
	struct host host = make_host(0);
	struct cgroup_view view;

	put_v1(&host, "/docker/abc", "/docker/abc/job");
	cgroup_view_read(&host, &view);
	CHECK_STR(view.at[CG_PIDS].dir, "sys/fs/cgroup/pids/job");
}

TEST(a_hybrid_host_takes_each_controller_from_where_it_is)
{
	struct host host = make_host(0);
	struct cgroup_view view;

	put(&host, "proc/self/mountinfo",
	    "32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	put(&host, "proc/self/cgroup", "4:memory:/\n0::/\n");
	put(&host, "sys/fs/cgroup/memory/cgroup.procs", "");
	put(&host, "sys/fs/cgroup/unified/cgroup.procs", "1\n");
	put(&host, "sys/fs/cgroup/unified/cgroup.controllers", "pids\n");
	cgroup_view_read(&host, &view);
	CHECK_INT(view.at[CG_MEMORY].version, 1);
	CHECK_INT(view.at[CG_PIDS].version, 2);
	CHECK_INT(view.at[CG_CPU].version, 0);
	CHECK_INT(view.at[CG_FREEZER].version, 2);
	CHECK_STR(run(&host, "cgroup_version").found, "hybrid (controllers in version 1)");
}

TEST(tables_that_make_no_sense_are_passed_over)
{
	static const char *const junk[] = {
		"",
		"\n\n\n",
		" - cgroup2",
		"1 2 3 - cgroup2 x y\n",
		"a b c d e f - cgroup cgroup rw,memory",
		"30 23 0:26 / relative rw - cgroup2 cgroup2 rw\n",
	};
	struct host host = make_host(0);

	for (size_t i = 0; i < ARRAY_LEN(junk); i++)
		for (size_t k = 0; k < ARRAY_LEN(junk); k++) {
			put(&host, "proc/self/mountinfo", junk[i]);
			put(&host, "proc/self/cgroup", junk[k]);
			CHECK_STR(run(&host, "cgroup_version").found, "none");
		}
}
