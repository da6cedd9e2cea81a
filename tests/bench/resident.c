/* SPDX-License-Identifier: Apache-2.0
 *
 * resident.c - what a sandbox costs when the warden is already there.
 *
 *     resident WARDEN STATE latency N PEER...    N sandboxes, each followed by the peer's command
 *     resident WARDEN STATE rate WORKERS SECONDS sandboxes per second
 *     resident WARDEN STATE bomb                 a fork bomb, its end, and the host's own forks
 *
 * A sandbox here is: create with everything on, run one static program, destroy.  Prints
 * "key value" lines. */
#include "wire/agent.h"
#include "wire/warden.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program[] = { "/usr/bin/busybox", "true" };

static _Noreturn void die(const char *what, const struct err *err)
{
	fprintf(stderr, "resident: %s: %s\n", what, err->text);
	exit(1);
}

static void send_exec(int stream, const char *const *argv, unsigned argc)
{
	uint8_t frame[FRAME_HEADER + 1024], credit[FRAME_HEADER + 4];
	struct pack pack = { .data = frame + FRAME_HEADER, .size = sizeof(frame) - FRAME_HEADER };

	pack_u32(&pack, 0);
	pack_u32(&pack, argc);
	for (unsigned i = 0; i < argc; i++)
		pack_text(&pack, argv[i]);
	pack_u32(&pack, 1);
	pack_text(&pack, "PATH=/usr/bin");
	pack_text(&pack, "/");
	frame_header(frame, AGENT_EXEC, 1, (uint32_t)pack.len);
	struct pack more = { .data = credit + FRAME_HEADER, .size = 4 };
	pack_u32(&more, 1 << 20);
	frame_header(credit, AGENT_CREDIT, 1, 4);
	(void)fd_write_all(stream, frame, FRAME_HEADER + pack.len);
	(void)fd_write_all(stream, credit, sizeof(credit));
}

/* Reads until a frame of that type. */
static void await(int stream, uint16_t type)
{
	static uint8_t buffer[FRAME_HEADER + FRAME_PAYLOAD_MAX];
	struct frame_reader reader;
	struct frame frame;
	struct err err = { 0 };

	frame_reader_init(&reader, buffer, sizeof(buffer));
	for (;;) {
		int r = frame_next(&reader, &frame, &err);
		if (r < 0 || (r == 0 && frame_fill(&reader, stream) <= 0))
			die("read the agent", &err);
		if (r > 0 && frame.type == AGENT_FAILED) {
			fprintf(stderr, "resident: the program could not be started\n");
			exit(1);
		}
		if (r > 0 && frame.type == type)
			return;
	}
}

static int start(struct warden *warden, char *id, uint32_t pids)
{
	static struct warden_create create;
	struct sandbox_facts facts;
	struct err err = { 0 };
	int stream;

	memset(&create, 0, sizeof(create));
	create.limits = profile_find(NULL)->limits;
	if (pids)
		create.limits.pids = pids;
	create.own_workspace = getenv("BENCH_WORKSPACE") != NULL;
	const char *guest = getenv("BENCH_GUEST");
	if (guest) {
		create.own_workspace = 1;
		if (warden_create_bind(&create, BIND_INPUT, guest, "guest", NULL, &err) < 0)
			die("bind", &err);
	}
	if (id_make(id, ID_SANDBOX, &err) < 0 ||
	    warden_create_send(warden, id, &create, &err) < 0 ||
	    warden_create_recv(warden, &facts, &stream, &err) < 0)
		die("create", &err);
	return stream;
}

static void cycle(struct warden *warden)
{
	char id[ID_SIZE];
	struct usage usage;
	struct err err = { 0 };
	int stream = start(warden, id, 0);

	send_exec(stream, program, ARRAY_LEN(program));
	await(stream, AGENT_EXIT);
	close(stream);
	if (warden_destroy(warden, id, &usage, &err) < 0)
		die("destroy", &err);
}

static void run_peer(char **argv)
{
	pid_t pid;
	int status = -1;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) == 0)
		waitpid(pid, &status, 0);
	if (status != 0) {
		fprintf(stderr, "resident: the peer '%s' failed\n", argv[0]);
		exit(1);
	}
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void report(const char *name, int64_t *times, int n)
{
	qsort(times, (size_t)n, sizeof(*times), by_size);
	printf("%s_p50 %lld\n%s_p90 %lld\n%s_p99 %lld\n", name, (long long)times[n / 2], name,
	       (long long)times[n * 9 / 10], name, (long long)times[n * 99 / 100]);
}

static void latency(struct warden *warden, int n, char **peer)
{
	int64_t *ours = calloc((size_t)n, sizeof(*ours)),
		*theirs = calloc((size_t)n, sizeof(*ours));

	for (int i = -5; i < n; i++) {
		int64_t t0 = clock_mono_us();
		cycle(warden);
		int64_t t1 = clock_mono_us();
		run_peer(peer);
		int64_t t2 = clock_mono_us();
		if (i >= 0) {
			ours[i] = t1 - t0;
			theirs[i] = t2 - t1;
		}
	}
	report("resident", ours, n);
	report("peer", theirs, n);
	free(ours);
	free(theirs);
}

static void rate(const char *path, const char *state, int workers, int seconds)
{
	int pipes[2];
	long total = 0, one;

	if (pipe(pipes) < 0)
		exit(1);
	for (int i = 0; i < workers; i++) {
		if (fork() != 0)
			continue;
		struct warden warden;
		struct err err = { 0 };
		long n = 0;
		if (warden_spawn(&warden, path, state, 8, &err) < 0)
			die("start the warden", &err);
		cycle(&warden);
		for (int64_t until = clock_mono_ms() + seconds * 1000; clock_mono_ms() < until; n++)
			cycle(&warden);
		warden_finish(&warden);
		(void)!write(pipes[1], &n, sizeof(n));
		_exit(0);
	}
	for (int i = 0; i < workers; i++)
		if (read(pipes[0], &one, sizeof(one)) == (ssize_t)sizeof(one))
			total += one;
	while (wait(NULL) > 0)
		;
	printf("per_second %.1f\n", (double)total / seconds);
}

/* Time from the kill to the end of all processes, and of the host's own forks meanwhile. */
static void bomb(struct warden *warden)
{
	const char *argv[] = { "/workspace/input/guest", "bomb", "256" };
	struct err err = { 0 };
	char id[ID_SIZE];
	int64_t worst = 0, sum = 0;
	int stream = start(warden, id, 256);

	send_exec(stream, argv, ARRAY_LEN(argv));
	await(stream, AGENT_STARTED);
	usleep(1500000);
	for (int i = 0; i < 100; i++) {
		int64_t t0 = clock_mono_us();
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
		int64_t took = clock_mono_us() - t0;
		sum += took;
		worst = took > worst ? took : worst;
	}
	struct usage usage;
	(void)warden_stats(warden, id, &usage, &err);
	int64_t t0 = clock_mono_us();
	if (warden_kill(warden, id, &err) < 0)
		die("kill", &err);
	printf("bomb_processes %llu\nbomb_dead_us %lld\nhost_fork_mean_us %lld\nhost_fork_max_us "
	       "%lld\n",
	       (unsigned long long)usage.peak_pids, (long long)(clock_mono_us() - t0),
	       (long long)(sum / 100), (long long)worst);
	close(stream);
	(void)warden_destroy(warden, id, &usage, &err);
}

int main(int argc, char **argv)
{
	struct warden warden;
	struct err err = { 0 };

	if (argc < 4)
		return 2;
	if (strcmp(argv[3], "rate") == 0 && argc == 6) {
		rate(argv[1], argv[2], atoi(argv[4]), atoi(argv[5]));
		return 0;
	}
	if (warden_spawn(&warden, argv[1], argv[2], 8, &err) < 0)
		die("start the warden", &err);
	if (strcmp(argv[3], "latency") == 0 && argc > 5)
		latency(&warden, atoi(argv[4]), argv + 5);
	else if (strcmp(argv[3], "bomb") == 0)
		bomb(&warden);
	warden_finish(&warden);
	return 0;
}
