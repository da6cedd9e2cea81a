/* SPDX-License-Identifier: Apache-2.0 */
#include "template.h"

#include "plan.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CPUS_MAX 1024 /* as many as limits_check() allows */

static const struct {
	const char *path, *text;
} files[] = {
	{ "etc/passwd", "root:x:0:0:root:/workspace:/usr/sbin/nologin\n"
			"user:x:1000:1000:user:/workspace:/bin/bash\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1 localhost cay\n::1 localhost\n" },
	{ "etc/hostname", "cay\n" },
	{ "etc/host.conf", "multi on\n" },
	/* There is nobody to ask: whoever asks all the same is told so at once. */
	{ "etc/resolv.conf", "options timeout:0 attempts:1\n" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\n"
			       "networks: files\nprotocols: files\nservices: files\n" },
	{ "etc/shells", "/bin/sh\n/bin/bash\n" },
	{ ".cay/canary", "Landlock is not on.\n" },
	{ ".cay/mask/empty", "" },
	{ ".cay/mask/loadavg", "0.00 0.00 0.00 1/1 1\n" },
	{ ".cay/mask/sys/kernel/hostname", "cay\n" },
	{ ".cay/mask/sys/fs/inotify/max_user_instances", TEMPLATE_INOTIFY_INSTANCES "\n" },
	{ ".cay/mask/sys/fs/inotify/max_user_watches", TEMPLATE_INOTIFY_WATCHES "\n" },
	{ ".cay/mask/sys/kernel/random/entropy_avail", "256\n" },
	{ ".cay/mask/sys/kernel/random/poolsize", "256\n" },
};

static const char *const dirs[] = {
	"etc",
	".cay",
	".cay/mask",
	".cay/mask/none",
	"usr",
	"proc",
	"dev",
	"tmp",
	"workspace",
	"home",
	"opt",
	"opt/cay",
	".cay/mask/sys",
	".cay/mask/sys/fs",
	".cay/mask/sys/fs/inotify",
	".cay/mask/sys/kernel",
	".cay/mask/sys/kernel/random",
	".cay/mask/sys/net",
	".cay/mask/sys/net/core",
	".cay/mask/sys/vm",
};

/* Settings that language runtimes look up; each is taken over from the host as it is. */
static const char *const sysctls[] = {
	"fs/file-max",      "fs/nr_open",         "fs/pipe-max-size",    "kernel/ostype",
	"kernel/osrelease", "kernel/version",     "kernel/cap_last_cap", "kernel/ngroups_max",
	"kernel/pid_max",   "kernel/threads-max", "net/core/somaxconn",  "vm/overcommit_memory",
	"vm/max_map_count",
};

/* Shown as they are: about the asking process, or known to everybody by system calls. */
static const char *const harmless[] = {
	"self", "thread-self", "mounts", "net", "uptime", "version", "filesystems",
};

static const char *const synthetic[] = { "cpuinfo", "meminfo", "stat", "loadavg", "sys" };

static int make_file(int dirfd, const char *path, const char *text, size_t len, struct err *err)
{
	auto_close int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	if (fd < 0)
		return err_errno(err, errno, "make '%s' of the template", path);
	if (len > 0 && write(fd, text, len) != (ssize_t)len)
		return err_errno(err, errno, "write '%s' of the template", path);
	return 0;
}

static bool is_in(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

int template_proc_masks(int proc_fd, struct proc_mask ret_masks[PROC_MASKS_MAX], struct err *err)
{
	int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int n = 0;

	if (!dir)
		return err_errno(err, errno, "list /proc");
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		const char *name = entry->d_name;
		if (name[0] == '.' || (name[0] >= '0' && name[0] <= '9') ||
		    is_in(name, harmless, ARRAY_LEN(harmless)))
			continue;
		if (n == PROC_MASKS_MAX || strlen(name) >= sizeof(ret_masks[n].name))
			return err_make(err, ERR_SETUP, "/proc has more names than cay can hide");
		const char *source = is_in(name, synthetic, ARRAY_LEN(synthetic)) ? name
				     : entry->d_type == DT_DIR                    ? "none"
										  : "empty";
		memcpy(ret_masks[n].name, name, strlen(name) + 1);
		memcpy(ret_masks[n].source, source, strlen(source) + 1);
		n++;
	}
	return n;
}

static unsigned visible_cpus(const struct plan *plan)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned cpus = (plan->create.limits.cpu_millis + 999) / 1000;

	return online > 0 && cpus > (unsigned)online ? (unsigned)online : cpus;
}

/* The host's first processor, as often as the limit says. */
static int make_cpuinfo(int dirfd, int proc_fd, unsigned cpus, struct err *err)
{
	auto_close int in = openat(proc_fd, "cpuinfo", O_RDONLY | O_CLOEXEC);
	char text[8192];
	ssize_t n = in < 0 ? 0 : read(in, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	char *end = strstr(text, "\n\n");
	const char *rest = strchr(text, '\n');
	if (end)
		end[1] = '\0';
	auto_close int fd =
		openat(dirfd, ".cay/mask/cpuinfo", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return err_errno(err, errno, "make 'cpuinfo' of the template");
	for (unsigned i = 0; i < cpus && i < CPUS_MAX; i++)
		if (dprintf(fd, "processor\t: %u%s\n", i, rest ? rest : "\n") < 0)
			return err_errno(err, errno, "write 'cpuinfo' of the template");
	return 0;
}

static int make_stat(int dirfd, unsigned cpus, struct err *err)
{
	auto_close int fd =
		openat(dirfd, ".cay/mask/stat", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	int64_t booted = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);

	if (fd < 0)
		return err_errno(err, errno, "make 'stat' of the template");
	bool good = dprintf(fd, "cpu  0 0 0 0 0 0 0 0 0 0\n") > 0;
	for (unsigned i = 0; good && i < cpus && i < CPUS_MAX; i++)
		good = dprintf(fd, "cpu%u 0 0 0 0 0 0 0 0 0 0\n", i) > 0;
	good = good && dprintf(fd,
			       "intr 0\nctxt 0\nbtime %lld\nprocesses 1\nprocs_running 1\n"
			       "procs_blocked 0\n",
			       (long long)(booted / 1000000000)) > 0;
	return good ? 0 : err_errno(err, errno, "write 'stat' of the template");
}

static int make_meminfo(int dirfd, uint64_t bytes, struct err *err)
{
	char text[512];
	uint64_t kib = bytes / 1024;
	int n = snprintf(text, sizeof(text),
			 "MemTotal:       %8" PRIu64 " kB\nMemFree:        %8" PRIu64
			 " kB\nMemAvailable:   %8" PRIu64 " kB\nBuffers:               0 kB\n"
			 "Cached:                0 kB\nSwapCached:            0 kB\n"
			 "SwapTotal:             0 kB\nSwapFree:              0 kB\n"
			 "Shmem:                 0 kB\nSReclaimable:          0 kB\n",
			 kib, kib, kib);

	return make_file(dirfd, ".cay/mask/meminfo", text, (size_t)n, err);
}

static int make_sysctls(int dirfd, int proc_fd, struct err *err)
{
	char text[512], from[96], to[96];

	for (size_t i = 0; i < ARRAY_LEN(sysctls); i++) {
		snprintf(from, sizeof(from), "sys/%s", sysctls[i]);
		snprintf(to, sizeof(to), ".cay/mask/sys/%s", sysctls[i]);
		ssize_t n = fd_read_text_at(proc_fd, from, text, sizeof(text));
		int r = n < 0 ? 0 : make_file(dirfd, to, text, (size_t)n, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Mount points of the trees that the plan shows. */
static int make_targets(int dirfd, const struct plan *plan, struct err *err)
{
	const struct warden_create *create = &plan->create;

	for (uint32_t i = 0; i < create->n_binds; i++) {
		const struct warden_bind *bind = &create->binds[i];
		if (bind->kind != BIND_TREE)
			continue;
		const char *target = create->strings + bind->target;
		int r = path_make_dirs(dirfd, target + strspn(target, "/"), 0755);
		if (r < 0)
			return err_errno(err, -r, "make the mount point '%s'", target);
	}
	return 0;
}

static int make_links(int dirfd, struct err *err)
{
	static const struct {
		const char *name, *to;
	} links[] = {
		{ "home/user", "/workspace" },
		{ "etc/mtab", "/proc/self/mounts" },
		{ "etc/os-release", "../usr/lib/os-release" },
		{ "etc/localtime", "../usr/share/zoneinfo/Etc/UTC" },
	};

	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlinkat(links[i].to, dirfd, links[i].name) < 0)
			return err_errno(err, errno, "link '%s' in the template", links[i].name);
	return 0;
}

int template_build_base(int dirfd, int proc_fd, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(dirfd, dirs[i], 0755) < 0)
			return err_errno(err, errno, "make '%s' of the base", dirs[i]);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		int r = make_file(dirfd, files[i].path, files[i].text, strlen(files[i].text), err);
		if (r < 0)
			return r;
	}
	int r = make_links(dirfd, err);
	return r < 0 ? r : make_sysctls(dirfd, proc_fd, err);
}

int template_build(int dirfd, int proc_fd, const struct plan *plan, struct err *err)
{
	unsigned cpus = visible_cpus(plan);

	if (mkdirat(dirfd, ".cay", 0755) < 0 || mkdirat(dirfd, ".cay/mask", 0755) < 0)
		return err_errno(err, errno, "make '.cay' of the template");
	int r = make_cpuinfo(dirfd, proc_fd, cpus, err);
	if (r == 0)
		r = make_stat(dirfd, cpus, err);
	if (r == 0)
		r = make_meminfo(dirfd, plan->create.limits.memory_bytes, err);
	return r < 0 ? r : make_targets(dirfd, plan, err);
}
