/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking until something says no.  All of it is bounded, in case that nothing does. */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1ul << 20)

static unsigned long number(int argc, char **argv, int at, unsigned long otherwise)
{
	return argc > at ? strtoul(argv[at], NULL, 10) : otherwise;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Touches so many MiB; false when there were no more to be had. */
static bool take_memory(unsigned long mib)
{
	for (unsigned long i = 0; i < mib; i++) {
		char *p =
			mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return false;
		memset(p, (int)i | 1, MIB);
	}
	return true;
}

/* MiB, and among how many processes. */
static void memory(int argc, char **argv)
{
	unsigned long mib = number(argc, argv, 0, 128), processes = number(argc, argv, 1, 1);

	for (unsigned long i = 1; i < processes; i++)
		if (fork() == 0) {
			take_memory(mib / processes);
			sleep(3);
			_exit(0);
		}
	bool all = take_memory(mib / processes);
	if (processes > 1)
		sleep(3);
	if (all)
		fail("%lu MiB were there", mib);
}

/* Children that die of it, again and again; we live on.  MiB, and how often. */
static void memory_again(int argc, char **argv)
{
	unsigned long mib = number(argc, argv, 0, 128), times = number(argc, argv, 1, 20);

	for (unsigned long i = 0; i < times; i++) {
		int status = 0;
		pid_t child = fork();

		if (child == 0)
			_exit(take_memory(mib) ? 1 : 0);
		if (waitpid(child, &status, 0) != child)
			fail("no child: %s", strerror(errno));
		if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
			fail("%lu MiB were there", mib);
	}
}

static void *burn(void *until)
{
	while (now() < *(double *)until)
		for (volatile int i = 0; i < 100000; i++)
			;
	return NULL;
}

/* Threads, and for how many milliseconds. */
static void spin_threads(int argc, char **argv)
{
	unsigned long threads = number(argc, argv, 0, 64), ms = number(argc, argv, 1, 2000);
	double until = now() + (double)ms / 1000;
	pthread_t ids[128];

	for (unsigned long i = 0; i < threads && i < 128; i++)
		if (pthread_create(&ids[i], NULL, burn, &until) != 0)
			fail("thread %lu: %s", i, strerror(errno));
	burn(&until);
}

/* One short-lived child after the other: none is ever seen to use much. */
static void burn_in_children(int argc, char **argv)
{
	double until = now() + (double)number(argc, argv, 0, 10000) / 1000;

	while (now() < until) {
		if (fork() == 0) {
			double end = now() + 0.1;
			burn(&end);
			_exit(0);
		}
		wait(NULL);
	}
	fail("nobody stopped it");
}

static void write_file(const char *path, unsigned long mib)
{
	static char block[MIB];
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	memset(block, 0x55, sizeof(block));
	for (unsigned long i = 0; i < mib; i++)
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block)) {
			/* Once more, now that a short write has filled it. */
			if (write(fd, block, sizeof(block)) == -1 && errno != ENOSPC &&
			    errno != EDQUOT && errno != EFBIG)
				fail("write '%s': %s", path, strerror(errno));
			close(fd);
			return;
		}
	close(fd);
	fail("'%s' has %lu MiB", path, mib);
}

/* A directory, and more MiB than it may hold. */
static void fill_disk(int argc, char **argv)
{
	const char *dir = argc > 0 ? argv[0] : "/workspace";
	unsigned long mib = number(argc, argv, 1, 128);
	char path[256];

	signal(SIGXFSZ, SIG_IGN);
	snprintf(path, sizeof(path), "%s/one", dir);
	write_file(path, mib);
	snprintf(path, sizeof(path), "%s/two", dir);
	write_file(path, mib);
	snprintf(path, sizeof(path), "%s/three", dir);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	if (fd >= 0)
		REFUSED(fallocate(fd, 0, 0, (off_t)(mib * MIB)), ENOSPC, EDQUOT, EFBIG, EOPNOTSUPP);
	close(fd);
}

/* A file that says it is huge and is not: it must not be collected, nor counted. */
static void sparse_file(int argc, char **argv)
{
	int fd = open("/workspace/output/sparse", O_WRONLY | O_CREAT, 0600);

	(void)argc;
	(void)argv;
	signal(SIGXFSZ, SIG_IGN);
	if (ftruncate(fd, 1l << 40) < 0 && errno != EFBIG && errno != ENOSPC && errno != EINVAL)
		fail("truncate: %s", strerror(errno));
	close(fd);
}

/* A directory, and more files than it may have. */
static void many_files(int argc, char **argv)
{
	const char *dir = argc > 0 ? argv[0] : "/workspace";
	unsigned long most = number(argc, argv, 1, 100000);
	char path[256];

	for (unsigned long i = 0; i < most; i++) {
		snprintf(path, sizeof(path), "%s/f%lu", dir, i);
		int fd = open(path, O_WRONLY | O_CREAT, 0600);
		if (fd < 0) {
			if (errno != ENOSPC && errno != EDQUOT)
				fail("file %lu: %s", i, strerror(errno));
			return;
		}
		close(fd);
	}
	fail("%lu files", most);
}

static void deep_tree(int argc, char **argv)
{
	unsigned long deep = number(argc, argv, 0, 5000);

	WORKED(chdir("/workspace/output"));
	for (unsigned long i = 0; i < deep; i++)
		if (mkdir("d", 0700) < 0 || chdir("d") < 0) {
			if (errno != ENOSPC && errno != EDQUOT)
				fail("at depth %lu: %s", i, strerror(errno));
			return;
		}
}

/* The argument is the limit. */
static void descriptors(int argc, char **argv)
{
	unsigned long limit = number(argc, argv, 0, 4096), n = 0;

	while (n < 2000000 && dup(0) >= 0)
		n++;
	if (errno != EMFILE || n > limit)
		fail("%lu descriptors, then %s", n, strerror(errno));
	REFUSED(dup2(0, (int)limit + 1), EBADF, EMFILE);
	REFUSED(dup2(0, 1 << 20), EBADF, EMFILE);
}

static void flood_output(int argc, char **argv)
{
	static char block[65536];
	unsigned long mib = number(argc, argv, 0, 64);

	memset(block, 'y', sizeof(block));
	for (unsigned long i = 0; i < mib * MIB / sizeof(block); i++)
		if (write(1, block, sizeof(block)) < 0)
			break;
}

static void flush_all(int argc, char **argv)
{
	double start = now();

	(void)argc;
	(void)argv;
	for (int i = 0; i < 20000; i++) {
		WORKED(syscall(SYS_syncfs, 0));
		sync();
	}
	if (now() - start > 2)
		fail("flushing took %.1f s", now() - start);
}

static void kernel_objects(int argc, char **argv)
{
	timer_t timer;
	unsigned n = 0;
	sigset_t set;

	(void)argc;
	(void)argv;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (n < 200000 && sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 }) == 0)
		n++;
	if (errno != EAGAIN)
		fail("%u signals, then %s", n, strerror(errno));
	for (n = 0; n < 200000 && timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0;)
		n++;
	if (errno != EAGAIN)
		fail("%u timers, then %s", n, strerror(errno));
	for (n = 0; n < 20000 && inotify_init() >= 0;)
		n++;
	if (errno != EMFILE)
		fail("%u inotify instances, then %s", n, strerror(errno));
	REFUSED(syscall(SYS_semget, 0, 1, 01600), EPERM);
	REFUSED(syscall(SYS_msgget, 0, 01600), EPERM);
	REFUSED(syscall(SYS_shmget, 0, 4096, 01600), EPERM);
	REFUSED(syscall(SYS_mq_open, "cay", O_CREAT | O_RDWR, 0600, NULL), EPERM);
}

static void many_terminals(int argc, char **argv)
{
	unsigned long n = 0, limit = number(argc, argv, 0, 64);

	while (n < 5000 && open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
		n++;
	if (errno != ENOSPC && errno != EMFILE)
		fail("%lu terminals, then %s", n, strerror(errno));
	if (n > limit)
		fail("%lu terminals", n);
}

const struct probe resource_probes[] = {
	{ "D101", memory, false },         { "D103", memory_again, false },
	{ "D105", spin_threads, false },   { "D106", burn_in_children, false },
	{ "D107", fill_disk, false },      { "D108", sparse_file, false },
	{ "D109", many_files, false },     { "D110", deep_tree, false },
	{ "D111", descriptors, false },    { "D112", flood_output, false },
	{ "D115", flush_all, false },      { "D116", kernel_objects, false },
	{ "D118", many_terminals, false }, { NULL, NULL, false },
};
