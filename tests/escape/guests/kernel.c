/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's own doors: namespaces, exotic calls, keys, clocks, /proc/sys, cgroups. */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long try_clone(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0L, 0L, 0L, 0L);

	if (pid == 0)
		_exit(0);
	return pid;
}

static long try_clone3(unsigned long flags)
{
	uint64_t args[11] = { flags, 0, 0, 0, SIGCHLD };
	long pid = syscall(SYS_clone3, args, sizeof(args));

	if (pid == 0)
		_exit(0);
	return pid;
}

static void namespaces(int argc, char **argv)
{
	const unsigned long flags[] = {
		CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
		CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET, CLONE_NEWTIME
	};
	const char *const names[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time" };

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		char path[32];

		REFUSED(syscall(SYS_unshare, flags[i]), EPERM);
		REFUSED(try_clone(flags[i]), EPERM);
		REFUSED(try_clone(flags[i] | 1ul << 32), EPERM);
		snprintf(path, sizeof(path), "/proc/1/ns/%s", names[i]);
		REFUSED(open(path, O_RDONLY), EACCES, EPERM, ENOENT);
		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		REFUSED(syscall(SYS_setns, open(path, O_RDONLY), 0), EPERM);
	}
}

static void *thread(void *argument)
{
	*(int *)argument = 1;
	return NULL;
}

static void new_clone(int argc, char **argv)
{
	char *const true_argv[] = { (char *)"true", NULL };
	char *const no_env[] = { NULL };
	pthread_t t;
	pid_t pid;
	int ran = 0, status = -1;

	(void)argc;
	(void)argv;
	REFUSED(try_clone3(0), ENOSYS);
	REFUSED(try_clone3(CLONE_NEWUSER), ENOSYS);
	if (pthread_create(&t, NULL, thread, &ran) != 0 || pthread_join(t, NULL) != 0 || !ran)
		fail("no thread");
	if (posix_spawn(&pid, "/bin/true", NULL, NULL, true_argv, no_env) != 0)
		fail("no posix_spawn");
	else if (waitpid(pid, &status, 0) != pid || status != 0)
		fail("/bin/true ended with %#x", (unsigned)status);
	pid = vfork();
	if (pid == 0)
		_exit(0);
	WORKED(waitpid(pid, NULL, 0));
}

static void rings(int argc, char **argv)
{
	char params[120] = { 0 };

	(void)argc;
	(void)argv;
	REFUSED(syscall(SYS_io_uring_setup, 4, params), ENOSYS);
	REFUSED(syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0), ENOSYS);
	REFUSED(syscall(SYS_io_uring_register, 0, 0, NULL, 0), ENOSYS);
}

static void foreign_i386(int argc, char **argv)
{
	long answer;

	(void)argc;
	(void)argv;
	__asm__ volatile("int $0x80" : "=a"(answer) : "a"(20) : "memory", "cc");
	fail("int 0x80 answered %ld", answer);
}

static void foreign_x32(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fail("an x32 call answered %ld", syscall(0x40000000 | SYS_getpid));
}

static void zero_copy(int argc, char **argv)
{
	int pipes[2], others[2], file = open("/usr/bin/env", O_RDONLY);

	(void)argc;
	(void)argv;
	if (pipe(pipes) < 0 || pipe(others) < 0)
		fail("no pipe");
	REFUSED(syscall(SYS_splice, file, NULL, pipes[1], NULL, 1, 0), ENOSYS);
	REFUSED(syscall(SYS_tee, pipes[0], others[1], 1, 0), ENOSYS);
	REFUSED(syscall(SYS_vmsplice, pipes[1], NULL, 0, 0), ENOSYS);
	REFUSED(syscall(SYS_sendfile, pipes[1], file, NULL, 1), EINVAL);
	REFUSED(syscall(SYS_process_madvise, 0, NULL, 0, 0, 0), ENOSYS);
}

static void all_calls(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	print_syscalls();
}

static void exotic(int argc, char **argv)
{
	const long calls[] = {
		SYS_bpf,         SYS_perf_event_open, SYS_kexec_load,    SYS_kexec_file_load,
		SYS_init_module, SYS_finit_module,    SYS_delete_module, SYS_swapon,
		SYS_swapoff,     SYS_reboot,          SYS_iopl,          SYS_ioperm,
		SYS_acct,        SYS_quotactl,        SYS_userfaultfd,   447 /* memfd_secret */,
		SYS_move_pages,  SYS_mbind,           SYS_modify_ldt,    SYS_syslog,
		SYS_vhangup,     SYS_lookup_dcookie,
	};

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (syscall(calls[i], 0, 0, 0, 0, 0, 0) != -1 || errno != EPERM)
			fail("call %ld: %s", calls[i], strerror(errno));
}

static void requests(int argc, char **argv)
{
	const unsigned long numbers[] = {
		1 /* FIBMAP */,
		0xc0045877 /* FIFREEZE */,
		0x40086602 /* FS_IOC_SETFLAGS */,
		0x4c00 /* LOOP_SET_FD */,
		0x4c82 /* LOOP_CTL_GET_FREE */,
		0x400454ca /* TUNSETIFF */,
		0x8916 /* SIOCSIFADDR */,
		0x8946 /* SIOCETHTOOL */,
		0x8914 /* SIOCSIFFLAGS */,
		0xae01 /* KVM_CREATE_VM */,
		0x1261 /* BLKFLSBUF */,
	};
	int fds[] = { 0, open("/workspace", O_RDONLY), open("/dev/null", O_RDWR),
		      open("/usr/bin/env", O_RDONLY) };

	(void)argc;
	(void)argv;
	for (size_t f = 0; f < sizeof(fds) / sizeof(fds[0]); f++)
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			REFUSED(syscall(SYS_ioctl, fds[f], numbers[i], 0), EPERM, ENOTTY);
			REFUSED(syscall(SYS_ioctl, fds[f], numbers[i] | 5ul << 32, 0), EPERM,
				ENOTTY);
		}
}

static void expect_status(const char *status, const char *line)
{
	if (!strstr(status, line))
		fail("/proc/self/status has no '%s'", line);
}

static void capabilities(int argc, char **argv)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { ~0u, ~0u, ~0u }, { ~0u, ~0u, ~0u } };
	const char *status = read_whole("/proc/self/status");

	(void)argc;
	(void)argv;
	expect_status(status, "\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n"
			      "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"
			      "CapAmb:\t0000000000000000\n");
	expect_status(status, "\nNoNewPrivs:\t1\n");
	expect_status(status, "\nSeccomp:\t2\n");
	expect_status(status, "\nUid:\t1000\t1000\t1000\t1000\n");
	expect_status(status, "\nGid:\t1000\t1000\t1000\t1000\n");
	if (getgroups(0, NULL) != 0)
		fail("there are other groups");
	REFUSED(syscall(SYS_capset, &header, data), EPERM);
	REFUSED(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0), EPERM, EINVAL);
	REFUSED(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), EPERM);
	REFUSED(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0), EPERM);
	REFUSED(syscall(SYS_setgroups, 0, NULL), EPERM);
}

/* A file of the host's kernel: not there, not readable, or empty. */
static void hidden(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_NONBLOCK);

	if (fd < 0) {
		if (errno != ENOENT && errno != EACCES && errno != EPERM && errno != ENXIO)
			fail("open '%s': %s", path, strerror(errno));
		return;
	}
	if (read(fd, &byte, 1) > 0)
		fail("'%s' can be read", path);
	close(fd);
}

static void keys(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	REFUSED(syscall(SYS_add_key, "user", "cay", "x", 1, -3), EPERM);
	REFUSED(syscall(SYS_request_key, "user", "cay", NULL, 0), EPERM);
	REFUSED(syscall(SYS_keyctl, 1, NULL), EPERM);
	REFUSED(syscall(SYS_keyctl, 10, -3, "user", "cay", 0), EPERM);
	REFUSED(syscall(SYS_keyctl, 11, 1, NULL, 0), EPERM);
	hidden("/proc/keys");
	hidden("/proc/key-users");
}

static void kernel_log(int argc, char **argv)
{
	char text[64];

	(void)argc;
	(void)argv;
	REFUSED(syscall(SYS_syslog, 3, text, sizeof(text)), EPERM);
	hidden("/dev/kmsg");
	hidden("/proc/kmsg");
	hidden("/proc/kcore");
	hidden("/sys/kernel/debug");
	const char *symbols = read_whole("/proc/kallsyms");
	if (*symbols && strncmp(symbols, "0000000000000000 ", 17) != 0)
		fail("/proc/kallsyms tells addresses");
}

/* The way from the namespace's root to the sandbox's own leaf has names of cay's making only. */
static void names_of_cgroups(void)
{
	char text[4096], *lines = NULL;

	snprintf(text, sizeof(text), "%s", read_whole("/proc/self/cgroup"));
	for (char *line = strtok_r(text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
		char *path = strrchr(line, ':'), *names = NULL;
		for (char *name = strtok_r(path ? path + 1 : line, "/", &names); name;
		     name = strtok_r(NULL, "/", &names))
			if (strcmp(name, "..") != 0 && strncmp(name, "cay-", 4) != 0 &&
			    (strlen(name) != 27 || name[0] != 'b'))
				fail("/proc/self/cgroup tells the host's '%s'", name);
	}
}

static void cgroups(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	REFUSED(syscall(SYS_mount, "cgroup", "/tmp", "cgroup", 0UL, "memory"), EPERM);
	REFUSED(syscall(SYS_mount, "cgroup2", "/tmp", "cgroup2", 0UL, NULL), EPERM);
	REFUSED(open("/sys/fs/cgroup", O_RDONLY), ENOENT);
	REFUSED(open("/sys/fs/cgroup/cgroup.procs", O_WRONLY), ENOENT);
	if (strstr(read_whole("/proc/self/mountinfo"), " - cgroup"))
		fail("a cgroup file system is mounted");
	names_of_cgroups();
}

static bool is_refusal(int errnum)
{
	return errnum == EROFS || errnum == EACCES || errnum == EPERM || errnum == ENOENT;
}

/* Belongs to the whole machine: to open it is enough; a write would do the harm. */
static void try_open(const char *path)
{
	int fd = open(path, O_WRONLY);

	if (fd >= 0)
		fail("'%s' can be opened for writing", path);
	else if (!is_refusal(errno))
		fail("'%s': %s", path, strerror(errno));
	close(fd);
}

/* Belongs to this process, which may open it but not change it. */
static void try_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd >= 0 && write(fd, text, strlen(text)) >= 0)
		fail("'%s' took a write", path);
	else if (!is_refusal(errno) && errno != EINVAL)
		fail("'%s': %s", path, strerror(errno));
	close(fd);
}

static void settings(int argc, char **argv)
{
	const char *const paths[] = {
		"/proc/sys/kernel/core_pattern",
		"/proc/sys/kernel/hostname",
		"/proc/sys/kernel/pid_max",
		"/proc/sys/kernel/ns_last_pid",
		"/proc/sys/kernel/modprobe",
		"/proc/sys/vm/overcommit_memory",
		"/proc/sys/vm/drop_caches",
		"/proc/sys/fs/file-max",
		"/proc/sys/net/ipv4/ip_forward",
		"/proc/sys/user/max_user_namespaces",
		"/proc/sysrq-trigger",
		"/proc/irq/default_smp_affinity",
		"/proc/acpi/wakeup",
		"/proc/sys/fs/binfmt_misc/register",
		"/proc/timer_list",
		"/proc/1/uid_map",
	};

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		try_open(paths[i]);
	try_write("/proc/self/uid_map", "0 0 1\n");
	try_write("/proc/self/gid_map", "0 0 1\n");
	try_write("/proc/self/setgroups", "allow");
	try_write("/proc/self/attr/current", "unconfined");
	try_write("/proc/self/attr/exec", "unconfined");
	try_write("/proc/1/attr/current", "unconfined");
}

static void clocks(int argc, char **argv)
{
	struct timespec now = { 1, 0 };
	struct timeval day = { 1, 0 };
	struct timex adjust = { .modes = ADJ_OFFSET };

	(void)argc;
	(void)argv;
	REFUSED(syscall(SYS_clock_settime, CLOCK_REALTIME, &now), EPERM);
	REFUSED(syscall(SYS_settimeofday, &day, NULL), EPERM);
	REFUSED(syscall(SYS_adjtimex, &adjust), EPERM);
	REFUSED(syscall(SYS_clock_adjtime, CLOCK_REALTIME, &adjust), EPERM);
	REFUSED(timerfd_create(CLOCK_REALTIME_ALARM, 0), EPERM);
	REFUSED(timerfd_create(CLOCK_BOOTTIME_ALARM, 0), EPERM);
	REFUSED(syscall(SYS_sethostname, "x", 1), EPERM);
	REFUSED(syscall(SYS_setdomainname, "x", 1), EPERM);
}

/* The argument is the host's name. */
static void host_name(int argc, char **argv)
{
	struct utsname name;

	uname(&name);
	if (argc > 0 && strcmp(name.nodename, argv[0]) == 0)
		fail("the host's name is known");
	hidden("/proc/sys/kernel/random/boot_id");
	hidden("/proc/locks");
	hidden("/proc/diskstats");
	hidden("/proc/partitions");
	hidden("/proc/config.gz");
	hidden("/proc/cmdline");
	hidden("/proc/modules");
	hidden("/proc/iomem");
	hidden("/proc/interrupts");
	hidden("/proc/timer_list");
	hidden("/proc/vmallocinfo");
	hidden("/proc/slabinfo");
	hidden("/proc/sched_debug");
	hidden("/proc/latency_stats");
	hidden("/proc/mdstat");
}

const struct probe kernel_probes[] = {
	{ "D054", namespaces, false },
	{ "D055", new_clone, HARMLESS },
	{ "D056", rings, HARMLESS },
	{ "D057-i386", foreign_i386, HARMLESS },
	{ "D057-x32", foreign_x32, HARMLESS },
	{ "D059", zero_copy, HARMLESS },
	{ "D061", all_calls, false },
	{ "D065", exotic, false },
	{ "D066", requests, false },
	{ "D067", capabilities, HARMLESS },
	{ "D069", keys, false },
	{ "D070", kernel_log, HARMLESS },
	{ "D072", host_name, HARMLESS },
	{ "D073", cgroups, false },
	{ "D074", settings, false },
	{ "D075", clocks, false },
	{ NULL, NULL, false },
};
