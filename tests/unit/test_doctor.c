/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of `cay doctor` that read files, shown machines that are not this one. */
#include "doctor.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/path.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

/* A made-up root directory, removed at the end of the test's process. */
static char tree[64];
static pid_t owner;

static void remove_tree(void)
{
	auto_close int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

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
		.gid = uid,
		.user = uid ? "ada" : "root",
		.path = "/nowhere",
		.state_dir = "/var/lib/cay",
	};
}

static void put(const struct host *host, const char *path, const char *text)
{
	char dir[PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s", path);
	char *slash = strrchr(dir, '/');
	if (slash) {
		*slash = '\0';
		CHECK_INT(path_make_dirs(host->root, dir, 0755), 0);
	}
	auto_close int fd =
		openat(host->root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static struct finding run(const struct host *host, const char *name)
{
	const struct check *check = doctor_find(name);
	struct finding f = { 0 };

	CHECK(check);
	check->run(host, &f);
	return f;
}

static struct kernel_version parse(const char *release, const char *version, const char *signature)
{
	struct kernel_version v = { 0 };

	CHECK_INT(kernel_version_parse(release, version, signature, &v), 0);
	return v;
}

TEST(every_check_has_a_name_of_its_own_and_answers_on_an_empty_machine)
{
	struct host host = make_host(1000);

	host.runtimes_why = "no manifests";
	for (const struct check_group *g = doctor_groups(); g->title; g++)
		for (const struct check *c = g->checks; c->name; c++) {
			CHECK(doctor_find(c->name) == c);
			struct finding f = run(&host, c->name);
			CHECK(f.found[0] && f.means[0]);
			/* What cay cannot do without says how to get it. */
			CHECK(f.status != DOCTOR_MISSING || !c->essential || f.mend[0]);
		}
	CHECK(!doctor_find("nonsense"));
}

TEST(a_kernel_version_is_taken_from_where_the_distribution_tells_it)
{
	struct kernel_version v = parse("6.18.44-fc", "#1 SMP", "");
	CHECK(v.major == 6 && v.minor == 18 && v.patch == 44 && v.has_patch);
	v = parse("6.1.0-25-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.106-3 (2024-08-26)", "");
	CHECK(v.patch == 106 && v.has_patch);
	v = parse("5.15.0-91-generic", "#101-Ubuntu SMP", "Ubuntu 5.15.0-91.101-generic 5.15.131");
	CHECK(v.patch == 131 && v.has_patch);
	v = parse("5.14.0-427.el9.x86_64", "#1 SMP", "");
	CHECK(v.patch == 0 && !v.has_patch);
	v = parse("6.4.0", "", "");
	CHECK(v.patch == 0 && v.has_patch);
	/* A signature of another series is not believed. */
	v = parse("6.8.0-31-generic", "", "Ubuntu 5.15.0 5.15.131");
	CHECK(v.minor == 8 && !v.has_patch);
}

TEST(text_that_is_no_kernel_version_is_refused)
{
	static const char *const bad[] = { "", "six", "6", "6.", ".1.2", "-6.1" };
	struct kernel_version v;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(kernel_version_parse(bad[i], "", "", &v), -EINVAL);
}

TEST(known_holes_are_told_by_series_and_patch)
{
	static const struct {
		struct kernel_version v;
		bool hole;
	} cases[] = {
		{ { 5, 7, 19, true }, false },   { { 5, 10, 101, true }, true },
		{ { 5, 10, 102, true }, false }, { { 5, 14, 21, true }, true },
		{ { 5, 15, 24, true }, true },   { { 5, 15, 25, true }, false },
		{ { 5, 17, 0, true }, false },   { { 6, 1, 36, true }, true },
		{ { 6, 1, 37, true }, false },   { { 6, 2, 99, true }, true },
		{ { 6, 4, 0, true }, true },     { { 6, 4, 1, true }, false },
		{ { 6, 5, 0, true }, false },    { { 6, 1, 0, false }, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_INT(kernel_known_hole(&cases[i].v) != NULL, cases[i].hole);
}

TEST(an_old_kernel_is_missing_and_a_holed_one_degraded)
{
	struct host host = make_host(0);

	put(&host, "proc/sys/kernel/osrelease", "5.11.22\n");
	CHECK_INT(run(&host, "kernel").status, DOCTOR_MISSING);
	put(&host, "proc/sys/kernel/osrelease", "5.12.19\n");
	CHECK_INT(run(&host, "kernel").status, DOCTOR_DEGRADED);
	put(&host, "proc/sys/kernel/osrelease", "6.12.3\n");
	struct finding f = run(&host, "kernel");
	CHECK_INT(f.status, DOCTOR_OK);
	CHECK_STR(f.mend, "");
}

TEST(a_forbidding_switch_is_named_with_the_command_that_turns_it)
{
	struct host host = make_host(1000);
	struct err tried;
	struct finding f = { 0 };

	err_errno(&tried, EPERM, "clone");
	put(&host, "proc/sys/user/max_user_namespaces", "15000\n");
	put(&host, "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
	userns_explain(&host, &tried, &f);
	CHECK_INT(f.status, DOCTOR_MISSING);
	CHECK_STR(f.mend, "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");

	put(&host, "proc/sys/kernel/unprivileged_userns_clone", "0\n");
	userns_explain(&host, &tried, &f);
	CHECK_STR(f.mend, "sudo sysctl -w kernel.unprivileged_userns_clone=1");

	/* Root is held back by neither, but by the number. */
	host.uid = 0;
	userns_explain(&host, &tried, &f);
	CHECK(strstr(f.found, "clone"));
	put(&host, "proc/sys/user/max_user_namespaces", "0\n");
	userns_explain(&host, &tried, &f);
	CHECK_STR(f.mend, "sudo sysctl -w user.max_user_namespaces=15000");
}

TEST(ranges_of_ids_belong_to_a_name_or_a_number)
{
	static const char text[] = "bob:100000:65536\n"
				   "ada:165536:1000\n"
				   "1000:300000:70000\n"
				   "adam:500000:99999\n"
				   "ada:x:y\n"
				   "ada:1\n"
				   "ada:1:2:3\n"
				   "\n"
				   "ada:400000:65536";

	CHECK_INT((long long)subid_largest(text, "ada", 1000), 70000);
	CHECK_INT((long long)subid_largest(text, "ada", 1), 65536);
	CHECK_INT((long long)subid_largest(text, "", 7), 0);
	CHECK_INT((long long)subid_largest("", "ada", 1000), 0);
	CHECK_INT((long long)subid_next(text), 599999);
	CHECK_INT((long long)subid_next(""), 100000);
}

TEST(a_user_without_ranges_is_told_a_free_one)
{
	if (geteuid() != 0)
		SKIP("only root makes a set-uid file of root");
	struct host host = make_host(1000);
	char bin[PATH_MAX];

	put(&host, "bin/newuidmap", "");
	put(&host, "bin/newgidmap", "");
	put(&host, "etc/subuid", "bob:100000:65536\n");
	put(&host, "etc/subgid", "bob:100000:65536\n");
	(void)snprintf(bin, sizeof(bin), "%s/bin", tree);
	host.path = bin;
	CHECK_STR(run(&host, "id_ranges").mend, "sudo apt-get install --reinstall uidmap");
	CHECK_INT(fchmodat(host.root, "bin/newuidmap", 04755, 0), 0);
	CHECK_INT(fchmodat(host.root, "bin/newgidmap", 04755, 0), 0);
	struct finding f = run(&host, "id_ranges");
	CHECK_INT(f.status, DOCTOR_DEGRADED);
	CHECK_STR(f.mend,
		  "sudo usermod --add-subuids 165536-231071 --add-subgids 165536-231071 ada");

	put(&host, "etc/subuid", "ada:100000:65536\n");
	put(&host, "etc/subgid", "1000:100000:65536\n");
	CHECK_INT(run(&host, "id_ranges").status, DOCTOR_OK);
}

TEST(root_of_a_container_has_no_ranges_to_give)
{
	struct host host = make_host(0);

	put(&host, "proc/self/uid_map", "         0          0 4294967295\n");
	CHECK_INT(run(&host, "id_ranges").status, DOCTOR_OK);
	put(&host, "proc/self/uid_map", "         0     100000      65536\n");
	CHECK_INT(run(&host, "id_ranges").status, DOCTOR_MISSING);
}

TEST(settings_of_the_host_are_judged_by_their_number)
{
	static const struct {
		const char *check, *path, *good, *bad, *mend;
	} cases[] = {
		{ "tiocsti", "dev/tty/legacy_tiocsti", "0", "1",
		  "sudo sysctl -w dev.tty.legacy_tiocsti=0" },
		{ "io_uring", "kernel/io_uring_disabled", "2", "0",
		  "sudo sysctl -w kernel.io_uring_disabled=2" },
		{ "unprivileged_bpf", "kernel/unprivileged_bpf_disabled", "1", "0",
		  "sudo sysctl -w kernel.unprivileged_bpf_disabled=2" },
		{ "unprivileged_userfaultfd", "vm/unprivileged_userfaultfd", "0", "1",
		  "sudo sysctl -w vm.unprivileged_userfaultfd=0" },
		{ "pid_max", "kernel/pid_max", "4194304", "32768",
		  "sudo sysctl -w kernel.pid_max=4194304" },
		{ "dmesg_restrict", "kernel/dmesg_restrict", "1", "0",
		  "sudo sysctl -w kernel.dmesg_restrict=1" },
		{ "kptr_restrict", "kernel/kptr_restrict", "2", "0",
		  "sudo sysctl -w kernel.kptr_restrict=1" },
		{ "core_pattern", "kernel/core_pattern", "core", "|/usr/lib/helper %p",
		  "sudo sysctl -w kernel.core_pattern=core" },
	};
	struct host host = make_host(0);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char path[PATH_MAX];
		(void)snprintf(path, sizeof(path), "proc/sys/%s", cases[i].path);
		put(&host, path, cases[i].good);
		CHECK_INT(run(&host, cases[i].check).status, DOCTOR_OK);
		put(&host, path, cases[i].bad);
		struct finding f = run(&host, cases[i].check);
		CHECK_INT(f.status, DOCTOR_DEGRADED);
		CHECK_STR(f.mend, cases[i].mend);
	}
	put(&host, "proc/sys/vm/memfd_noexec", "2\n");
	CHECK_INT(run(&host, "memfd_exec").status, DOCTOR_MISSING);
}

TEST(swap_and_page_merging_are_seen)
{
	struct host host = make_host(0);

	put(&host, "proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
	CHECK_INT(run(&host, "swap").status, DOCTOR_OK);
	put(&host, "proc/swaps", "Filename\tType\n/dev/sda2       partition\t1\t0\t-2\n");
	CHECK_STR(run(&host, "swap").found, "/dev/sda2");
	put(&host, "sys/kernel/mm/ksm/run", "1\n");
	CHECK_INT(run(&host, "ksm").status, DOCTOR_DEGRADED);
}

TEST(foreign_bytes_do_not_reach_the_terminal)
{
	struct host host = make_host(0);

	put(&host, "proc/sys/kernel/core_pattern", "|/x\033[2J\xff %p");
	CHECK_STR(run(&host, "core_pattern").found, "|/x?[2J? %p");
}

TEST(quota_is_a_loop_file_where_root_has_all_it_needs)
{
	struct host host = make_host(0);

	CHECK_STR(run(&host, "quota").mend, "sudo modprobe loop");
	put(&host, "dev/loop-control", "");
	CHECK_STR(run(&host, "quota").mend, "sudo apt-get install e2fsprogs");
	put(&host, "usr/sbin/mke2fs", "");
	CHECK_STR(run(&host, "quota").found, "loop file");
	CHECK_INT(run(&host, "quota").status, DOCTOR_OK);
	host.uid = 1000;
	CHECK_STR(run(&host, "quota").found, "a watched directory");
}

TEST(a_key_that_others_can_read_is_refused)
{
	struct host host = make_host(geteuid());

	CHECK_INT(run(&host, "receipt_key").status, DOCTOR_OK);
	put(&host, "var/lib/cay/keys/receipt.key", "0123456789abcdef0123456789abcdef");
	CHECK_INT(run(&host, "receipt_key").status, DOCTOR_MISSING);
	CHECK_INT(fchmodat(host.root, "var/lib/cay/keys/receipt.key", 0600, 0), 0);
	CHECK_INT(run(&host, "receipt_key").status, DOCTOR_OK);
	host.uid++;
	CHECK_INT(run(&host, "receipt_key").status, DOCTOR_MISSING);
}

TEST(the_state_directory_must_be_ours)
{
	struct host host = make_host(geteuid());

	CHECK(run(&host, "state_dir").status != DOCTOR_MISSING);
	put(&host, "var/lib/cay/lock", "");
	CHECK(run(&host, "state_dir").status != DOCTOR_MISSING);
	host.uid++;
	CHECK_INT(run(&host, "state_dir").status, DOCTOR_MISSING);
}

TEST(programs_are_found_in_absolute_directories_only)
{
	struct host host = make_host(0);
	char found[PATH_MAX], path[PATH_MAX];

	put(&host, "bin/tool", "#!/bin/sh\necho one\necho two\n");
	(void)snprintf(path, sizeof(path), "bin::.:/nowhere:%s/bin", tree);
	host.path = path;
	CHECK_INT(chdir(tree), 0);
	CHECK(!host_find_program(&host, "tool", found, sizeof(found)));
	CHECK_INT(fchmodat(host.root, "bin/tool", 0755, 0), 0);
	CHECK(host_find_program(&host, "tool", found, sizeof(found)));
	CHECK(found[0] == '/');

	char line[64];
	char *argv[] = { found, NULL };
	CHECK_INT(doctor_run(argv, line, sizeof(line)), 0);
	CHECK_STR(line, "one");
}

TEST(a_tool_that_hangs_is_killed)
{
	char line[64];
	char *argv[] = { "/bin/sh", "-c", "echo first; sleep 60 & sleep 60", NULL };

	(void)alarm(20);
	CHECK_INT(doctor_run(argv, line, sizeof(line)), -ETIMEDOUT);
}

static int hang(void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	while (pause() < 0)
		;
	return 0;
}

static int crash(void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	raise(SIGKILL);
	return 0;
}

static int refuse(void *arg, struct err *err)
{
	return err_errno(err, EACCES, "look at '%s'", (const char *)arg);
}

TEST(a_trial_that_hangs_crashes_or_refuses_is_an_error)
{
	struct err err;

	(void)alarm(20);
	CHECK_INT(doctor_try(0, hang, NULL, &err), -ETIMEDOUT);
	CHECK(doctor_try(0, crash, NULL, &err) < 0);
	CHECK_INT(doctor_try(0, refuse, "it", &err), -EACCES);
	CHECK(strstr(err.text, "look at 'it'"));
	CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}
