/* SPDX-License-Identifier: Apache-2.0
 *
 * guest.c - small measured jobs, static, run in the jail and outside.
 *
 *     guest true                 ends at once
 *     guest syscall N            ns of one getppid
 *     guest create DIR N         small files made per second
 *     guest read FILE            MiB read per second, 64 KiB at a time
 *     guest bomb N               N processes that all try to fork for ever */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double measure_syscall(long n)
{
	double best = 1e9;

	for (int round = 0; round < 7; round++) {
		double start = now();
		for (long i = 0; i < n; i++)
			syscall(SYS_getppid);
		double each = (now() - start) / (double)n * 1e9;
		if (each < best)
			best = each;
	}
	return best;
}

static double measure_create(const char *dir, long n)
{
	char path[512];
	double start = now();

	for (long i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/f%ld", dir, i);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0 || write(fd, "0123456789", 10) != 10)
			exit(1);
		close(fd);
	}
	double each = (double)n / (now() - start);
	for (long i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/f%ld", dir, i);
		unlink(path);
	}
	return each;
}

static double measure_read(const char *path)
{
	static char buffer[65536];
	double bytes = 0, start = now();
	int fd = open(path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		exit(1);
	for (int round = 0; round < 8; round++) {
		lseek(fd, 0, SEEK_SET);
		while ((n = read(fd, buffer, sizeof(buffer))) > 0)
			bytes += (double)n;
	}
	return bytes / (now() - start) / 1048576;
}

static void bomb(long n)
{
	printf("ready\n");
	fflush(stdout);
	for (long i = 1; i < n; i++)
		if (fork() == 0)
			break;
	for (;;)
		if (fork() == 0)
			pause();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "true";

	if (strcmp(what, "syscall") == 0 && argc == 3)
		printf("%.2f\n", measure_syscall(atol(argv[2])));
	else if (strcmp(what, "create") == 0 && argc == 4)
		printf("%.1f\n", measure_create(argv[2], atol(argv[3])));
	else if (strcmp(what, "read") == 0 && argc == 3)
		printf("%.1f\n", measure_read(argv[2]));
	else if (strcmp(what, "bomb") == 0 && argc == 3)
		bomb(atol(argv[2]));
	return 0;
}
