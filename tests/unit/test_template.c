/* SPDX-License-Identifier: Apache-2.0 */
#include "template.h"

#include "plan.h"
#include "warden_fixture.h"

static struct proc_mask masks[PROC_MASKS_MAX];
static struct plan plan;
static int dir, proc;

static const char *source_of(int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(masks[i].name, name) == 0)
			return masks[i].source;
	return "shown";
}

TEST(masks_hide_everything_that_is_not_known)
{
	static const struct {
		const char *name, *source;
		bool is_dir;
	} names[] = {
		{ "kcore", "empty", false },     { "sysrq-trigger", "empty", false },
		{ "keys", "empty", false },      { "tomorrow", "empty", false },
		{ "bus", "none", true },         { "scsi", "none", true },
		{ "next-year", "none", true },   { "sys", "sys", true },
		{ "cpuinfo", "cpuinfo", false }, { "meminfo", "meminfo", false },
		{ "stat", "stat", false },       { "loadavg", "loadavg", false },
		{ "uptime", "shown", false },    { "version", "shown", false },
		{ "self", "shown", true },       { "1", "shown", true },
		{ "4242", "shown", true },
	};
	int hidden = 0;

	dir = tmp_make();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (names[i].is_dir)
			CHECK_INT(mkdirat(dir, names[i].name, 0755), 0);
		else
			make_file(dir, names[i].name, "", 0644);
		hidden += strcmp(names[i].source, "shown") != 0;
	}
	int n = template_proc_masks(dir, masks, &err);
	CHECK_INT(n, hidden);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK_STR(source_of(n, names[i].name), names[i].source);
	tmp_finish();
}

TEST(masks_of_this_kernel_hide_what_is_dangerous)
{
	static const char *const secret[] = { "kcore",         "kallsyms",   "keys",
					      "sysrq-trigger", "cmdline",    "sched_debug",
					      "config.gz",     "interrupts", "slabinfo",
					      "kmsg",          "mem",        "acpi" };

	proc = open("/proc", O_RDONLY | O_DIRECTORY);
	int n = template_proc_masks(proc, masks, &err);
	CHECK(n > 20);
	for (size_t i = 0; i < ARRAY_LEN(secret); i++)
		if (faccessat(proc, secret[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			CHECK(strcmp(source_of(n, secret[i]), "shown") != 0);
	CHECK_STR(source_of(n, "sys"), "sys");
}

TEST(masks_that_do_not_fit_end_the_start)
{
	char name[64];

	dir = tmp_make();
	for (int i = 0; i <= PROC_MASKS_MAX; i++) {
		snprintf(name, sizeof(name), "x%d", i);
		make_file(dir, name, "", 0644);
	}
	CHECK_INT(template_proc_masks(dir, masks, &err), -EPERM);
	CHECK_INT(err.kind, ERR_SETUP);
	tmp_finish();
	dir = tmp_make();
	memset(name, 'x', 63);
	name[63] = '\0';
	make_file(dir, name, "", 0644);
	CHECK_INT(template_proc_masks(dir, masks, &err), -EPERM);
	tmp_finish();
}

static void build(void)
{
	proc = open("/proc", O_RDONLY | O_DIRECTORY);
	dir = tmp_make();
	umask(0022);
	plan.create.limits = profile_find(NULL)->limits;
	plan.create.limits.cpu_millis = 1500;
}

static const char *content(const char *path)
{
	static char text[32768];

	CHECK(fd_read_text_at(dir, path, text, sizeof(text)) >= 0);
	return text;
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)) != NULL; text += strlen(what))
		n++;
	return n;
}

TEST(template_tells_the_limits_and_not_the_machine)
{
	build();
	CHECK_INT(template_build(dir, proc, &plan, &err), 0);
	CHECK(strstr(content(".cay/mask/meminfo"), "MemTotal:        1048576 kB\n") != NULL);
	int cpus = sysconf(_SC_NPROCESSORS_ONLN) < 2 ? 1 : 2;
	CHECK_INT(count(content(".cay/mask/cpuinfo"), "processor\t: "), cpus);
	CHECK_INT(count(content(".cay/mask/stat"), "\ncpu"), cpus);
	CHECK_INT(count(content(".cay/mask/stat"), "\nbtime "), 1);
	tmp_finish();
	build();
	plan.create.limits.cpu_millis = 400; /* a part of a processor is one */
	CHECK_INT(template_build(dir, proc, &plan, &err), 0);
	CHECK_INT(count(content(".cay/mask/cpuinfo"), "processor\t: "), 1);
	tmp_finish();
}

TEST(base_has_the_users_of_a_sandbox_and_not_the_machine)
{
	build();
	CHECK_INT(template_build_base(dir, proc, &err), 0);
	CHECK_STR(content(".cay/mask/sys/kernel/hostname"), "cay\n");
	CHECK_STR(content("etc/hostname"), "cay\n");
	CHECK(content(".cay/mask/sys/kernel/osrelease")[0] != '\0');
	CHECK_INT(count(content("etc/passwd"), "\n"), 3);
	CHECK(strstr(content("etc/passwd"), "user:x:1000:1000:user:/workspace:") != NULL);
	CHECK_INT(faccessat(dir, "etc/shadow", F_OK, 0), -1);
	struct stat st;
	CHECK_INT(fstatat(dir, "etc/passwd", &st, 0), 0);
	CHECK_INT(st.st_mode, S_IFREG | 0444);
	char to[64] = "";
	CHECK_INT(readlinkat(dir, "home/user", to, sizeof(to)), (ssize_t)strlen("/workspace"));
	tmp_finish();
}

TEST(template_has_the_mount_points_of_the_plan)
{
	build();
	CHECK_INT(warden_create_bind(&plan.create, BIND_TREE, "/a", "/opt/cay/x@1", "", &err), 0);
	CHECK_INT(warden_create_bind(&plan.create, BIND_TREE, "/a", "/lib64", "", &err), 0);
	CHECK_INT(template_build(dir, proc, &plan, &err), 0);
	CHECK_INT(faccessat(dir, "opt/cay/x@1", F_OK, 0), 0);
	CHECK_INT(faccessat(dir, "lib64", F_OK, 0), 0);
	tmp_finish();
}

TEST(template_is_built_in_an_empty_directory_only)
{
	build();
	CHECK_INT(mkdirat(dir, ".cay", 0777), 0);
	CHECK_INT(template_build(dir, proc, &plan, &err), -EEXIST);
	CHECK_INT(mkdirat(dir, "etc", 0777), 0);
	CHECK_INT(template_build_base(dir, proc, &err), -EEXIST);
	tmp_finish();
}
