/* SPDX-License-Identifier: Apache-2.0
 *
 * Other processes: seeing them, looking into them, getting more than one's share. */
#include "guest.h"

#include <asm/ioctls.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that waits until it is killed. */
static pid_t waiting_child(void)
{
	pid_t child = fork();

	while (child == 0)
		pause();
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static int count_processes(bool zombies)
{
	DIR *dir = opendir("/proc");
	int n = 0;

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		char path[300];

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/status", e->d_name);
		n += !zombies || strstr(read_whole(path), "State:\tZ");
	}
	if (dir)
		closedir(dir);
	return n;
}

static void see_others(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (pid_t pid = 2; pid <= 32768; pid++)
		if (pid != getpid() && (kill(pid, 0) == 0 || errno != ESRCH))
			fail("process %d can be seen", pid);
	int n = count_processes(false);
	if (n < 1 || n > 2)
		fail("/proc shows %d processes", n);
}

static void look_into(pid_t pid)
{
	char byte = 0;
	struct iovec local = { &byte, 1 }, remote = { &byte, 1 };

	REFUSED(syscall(SYS_ptrace, PTRACE_ATTACH, pid, 0, 0), EPERM);
	REFUSED(syscall(SYS_ptrace, PTRACE_SEIZE, pid, 0, 0), EPERM);
	REFUSED(syscall(SYS_process_vm_readv, pid, &local, 1, &remote, 1, 0), EPERM);
	REFUSED(syscall(SYS_process_vm_writev, pid, &local, 1, &remote, 1, 0), EPERM);
	REFUSED(syscall(SYS_kcmp, pid, getpid(), 0, 0, 0), EPERM);
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	REFUSED(syscall(SYS_pidfd_getfd, pidfd, 0, 0), EPERM);
	close(pidfd);
}

static void trace(int argc, char **argv)
{
	pid_t child = waiting_child();

	(void)argc;
	(void)argv;
	REFUSED(syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0), EPERM);
	look_into(1);
	look_into(child);
	end_child(child);
}

static void agent_files(int argc, char **argv)
{
	const char *const names[] = { "mem",         "environ", "maps",   "smaps",     "fd",
				      "root",        "cwd",     "exe",    "stack",     "syscall",
				      "auxv",        "pagemap", "fdinfo", "map_files", "io",
				      "personality", "timers" };

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64], byte;

		snprintf(path, sizeof(path), "/proc/1/%s", names[i]);
		int fd = open(path, O_RDONLY);
		if (fd < 0 && errno != EACCES && errno != EPERM && errno != ENOENT)
			fail("open '%s': %s", path, strerror(errno));
		/* Some can be opened, but then give nothing. */
		if (fd >= 0 && (read(fd, &byte, 1) > 0 || errno == EISDIR))
			fail("'%s' can be read", path);
		close(fd);
		REFUSED(readlink(path, &byte, 1), EACCES, EPERM, ENOENT, EINVAL);
	}
}

static void set_affinity(void)
{
	cpu_set_t before, all, after;

	sched_getaffinity(0, sizeof(before), &before);
	memset(&all, 0xff, sizeof(all));
	(void)sched_setaffinity(0, sizeof(all), &all);
	sched_getaffinity(0, sizeof(after), &after);
	if (CPU_COUNT(&after) > CPU_COUNT(&before))
		fail("%d processors instead of %d", CPU_COUNT(&after), CPU_COUNT(&before));
}

static void priorities(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 1 };
	uint64_t deadline[7] = { 48 | 6ull << 32, 0, 0, 1000000, 10000000, 10000000, 0 };

	(void)argc;
	(void)argv;
	REFUSED(setpriority(PRIO_PROCESS, 0, -20), EPERM, EACCES);
	REFUSED(setpriority(PRIO_USER, 0, -1), EPERM, EACCES);
	/* Raw: musl's wrappers always say ENOSYS. */
	REFUSED(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &param), EPERM, EACCES);
	REFUSED(syscall(SYS_sched_setscheduler, 0, SCHED_RR, &param), EPERM, EACCES);
	REFUSED(syscall(SYS_sched_setattr, 0, deadline, 0), EPERM, EACCES);
	REFUSED(syscall(SYS_ioprio_set, 1, 0, 1 << 13), EPERM, EACCES);
	set_affinity();
}

static void write_score(const char *path, const char *score)
{
	int fd = open(path, O_WRONLY);

	if (fd >= 0 && write(fd, score, strlen(score)) >= 0)
		fail("'%s' took %s", path, score);
	else if (errno != EACCES && errno != EPERM && errno != ENOENT && errno != EROFS)
		fail("'%s' with %s: %s", path, score, strerror(errno));
	close(fd);
}

static void oom_score(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	write_score("/proc/self/oom_score_adj", "-1000");
	write_score("/proc/self/oom_score_adj", "-1");
	write_score("/proc/1/oom_score_adj", "-1000");
	write_score("/proc/1/oom_score_adj", "1000");
	if (atoi(read_whole("/proc/self/oom_score_adj")) < 0)
		fail("the score is %s", read_whole("/proc/self/oom_score_adj"));
}

static int open_terminal(int *ret_slave)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlock = 0, number = 0;
	char path[64];

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 ||
	    ioctl(master, TIOCGPTN, &number) < 0) {
		fail("no terminal: %s", strerror(errno));
		return -1;
	}
	snprintf(path, sizeof(path), "/dev/pts/%d", number);
	*ret_slave = open(path, O_RDWR | O_NOCTTY);
	if (*ret_slave < 0)
		fail("open '%s': %s", path, strerror(errno));
	return master;
}

static void terminals(int argc, char **argv)
{
	struct winsize none = { 0, 0, 0, 0 }, huge = { 65535, 65535, 65535, 65535 };
	int slave = -1;

	(void)argc;
	(void)argv;
	REFUSED(open("/dev/tty", O_RDWR), ENXIO, ENOENT, EACCES);
	REFUSED(open("/dev/console", O_RDWR), ENOENT);
	int master = open_terminal(&slave);
	WORKED(ioctl(slave, TIOCSWINSZ, &none));
	WORKED(ioctl(slave, TIOCSWINSZ, &huge));
	if (setsid() < 0 && errno != EPERM)
		fail("setsid: %s", strerror(errno));
	if (fork() == 0) {
		/* Its own terminal may become the controlling one of its own session. */
		_exit(setsid() > 0 && ioctl(slave, TIOCSCTTY, 0) == 0 ? 0 : 1);
	}
	int status = -1;
	wait(&status);
	if (status != 0)
		fail("an own terminal cannot be the controlling one");
	close(master);
	close(slave);
}

static void type_into_terminal(int argc, char **argv)
{
	int slave = -1, master = open_terminal(&slave), discipline = 1;
	char byte = 'x', shift = 3;

	(void)argc;
	(void)argv;
	REFUSED(ioctl(slave, TIOCSTI, &byte), EPERM);
	REFUSED(ioctl(slave, TIOCLINUX, &shift), EPERM);
	REFUSED(ioctl(slave, TIOCCONS, NULL), EPERM);
	REFUSED(ioctl(slave, TIOCSETD, &discipline), EPERM);
	REFUSED(ioctl(slave, 0x5437 /* TIOCVHANGUP */, NULL), EPERM);
	/* The kernel looks at 32 bits; so must the filter. */
	REFUSED(syscall(SYS_ioctl, slave, TIOCSTI | 1UL << 32, &byte), EPERM);
	REFUSED(syscall(SYS_ioctl, slave, TIOCSTI | 0xffffffff00000000UL, &byte), EPERM);
	REFUSED(syscall(SYS_ioctl, 0, TIOCSTI, &byte), EPERM);
	close(master);
}

static void personalities(int argc, char **argv)
{
	const unsigned long good[] = { 0, 8, 0x20000, 0x20008, 0xffffffff };

	(void)argc;
	(void)argv;
	for (unsigned bit = 0; bit < 32; bit++) {
		unsigned long persona = 1ul << bit;

		if (persona == 8 || persona == 0x20000)
			continue;
		REFUSED(syscall(SYS_personality, persona), EPERM);
		REFUSED(syscall(SYS_personality, persona | 1ul << 32), EPERM);
		REFUSED(syscall(SYS_personality, persona | 8), EPERM);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		WORKED(syscall(SYS_personality, good[i]));
}

static void process_options(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	REFUSED(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), EPERM, EINVAL);
	REFUSED(prctl(PR_SET_PTRACER, -1L, 0, 0, 0), EPERM, EINVAL);
	REFUSED(prctl(PR_SET_MM, PR_SET_MM_BRK, 0, 0, 0), EPERM, EINVAL);
	REFUSED(prctl(PR_SET_SECCOMP, 2, 0, 0, 0), EPERM, EINVAL);
	REFUSED(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), EPERM, EINVAL);
	REFUSED(prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, 0), EPERM, EINVAL);
	REFUSED(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EPERM, EINVAL);
}

/* Zombies; on a busy machine it may take a moment until the agent has its turn. */
static int count_patiently(void)
{
	int zombies = count_processes(true);

	for (int i = 0; i < 50 && zombies > 32; i++) {
		usleep(10000);
		zombies = count_processes(true);
	}
	return zombies;
}

static int larger(int a, int b)
{
	return a > b ? a : b;
}

/* Children whose parents are gone; the agent must reap them. */
static void orphans(int argc, char **argv)
{
	int baseline = count_processes(false), worst = 0;

	(void)argc;
	(void)argv;
	for (int i = 0; i < 2000; i++) {
		pid_t child = fork();

		if (child == 0) {
			if (fork() == 0)
				usleep(1000);
			_exit(0);
		}
		if (child < 0) {
			fail("fork %d: %s", i, strerror(errno));
			break;
		}
		waitpid(child, NULL, 0);
		if (i % 100 == 99)
			worst = larger(worst, count_patiently());
	}
	if (worst > 32)
		fail("%d zombies at one time", worst);
	usleep(500000);
	if (count_processes(false) > baseline)
		fail("%d processes are left", count_processes(false));
}

const struct probe process_probes[] = {
	{ "D027", see_others, HARMLESS },
	{ "D036", orphans, false },
	{ "D039", trace, false },
	{ "D040", agent_files, HARMLESS },
	{ "D042", priorities, false },
	{ "D043", oom_score, false },
	{ "D046", terminals, false },
	{ "D047", type_into_terminal, false },
	{ "D052", personalities, HARMLESS },
	{ "D053", process_options, false },
	{ NULL, NULL, false },
};
