/* SPDX-License-Identifier: Apache-2.0
 *
 * program.c - what a C program needs of its system: threads, processes, files, memory, signals,
 * a library that is loaded at run time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int counter;

static void *count(void *arg)
{
	for (int i = 0; i < 10000; i++)
		counter++;
	return arg;
}

static void threads(void)
{
	pthread_t ids[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&ids[i], NULL, count, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(ids[i], NULL);
	printf("threads %d\n", counter);
}

static void processes(char **environ_)
{
	char *argv[] = { "sh", "-c", "exit 9", NULL };
	int status, pair[2];
	char text[8] = "";
	pid_t pid;

	posix_spawnp(&pid, "sh", NULL, NULL, argv, environ_);
	waitpid(pid, &status, 0);
	printf("spawn %d\n", WEXITSTATUS(status));
	socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
	pid = fork();
	if (pid == 0)
		_exit(write(pair[1], "child", 5) != 5);
	printf("socket %zd %s\n", read(pair[0], text, 7), text);
	waitpid(pid, &status, 0);
	pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	waitpid(pid, &status, 0);
	printf("signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void files(void)
{
	int fd = open("big", O_RDWR | O_CREAT | O_EXCL, 0600),
	    to = open("copy", O_RDWR | O_CREAT, 0600);
	char *map;

	if (fallocate(fd, 0, 0, 1 << 20) < 0)
		perror("fallocate");
	map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memset(map, 'c', 1 << 20);
	msync(map, 1 << 20, MS_SYNC);
	printf("copy_file_range %zd\n", copy_file_range(fd, NULL, to, NULL, 1 << 20, 0));
	printf("end %lld\n", (long long)lseek(to, 0, SEEK_END));
	int memory = memfd_create("m", MFD_CLOEXEC);
	printf("memfd %zd\n", write(memory, "abc", 3));
}

static void events(void)
{
	int event = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec in_10_ms = { .it_value.tv_nsec = 10000000 };
	struct pollfd polls[] = { { event, POLLIN, 0 }, { timer, POLLIN, 0 } };

	eventfd_write(event, 3);
	timerfd_settime(timer, 0, &in_10_ms, NULL);
	printf("event %d\n", poll(polls, 1, 1000));
	printf("timer %d\n", poll(polls + 1, 1, 5000));
}

int main(int argc, char **argv, char **envp)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	threads();
	processes(envp);
	files();
	events();
	void *library = dlopen("libm.so.6", RTLD_NOW);
	double (*root)(double) = library ? (double (*)(double))dlsym(library, "sqrt") : NULL;
	printf("dlopen %.3f\n", root ? root(2) : -1);
	printf("arguments %d %s\n", argc, argv[argc - 1]);
	return 7;
}
