/* SPDX-License-Identifier: Apache-2.0
 *
 * cay-agent - PID 1 of a sandbox.
 *
 * It starts what the client asks for, carries bytes between the two, and buries the dead.  It
 * has no privilege, no environment, no helpers and no secrets: whoever controls it has what the
 * code has anyway.  When its stream ends it exits, and the kernel ends everything else. */
#include "loop.h"

#include "base/auto.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* Unit tests build it as agent_main(), which wants a declaration. */
int main(int argc, char **argv);

static struct sandbox sandbox;

/* What the warden left for us, made safe to keep.  Before anything is opened: a descriptor that
 * is absent must not be mistaken for a new one. */
static int adopt(int fd)
{
	return fd_set_cloexec(fd, true) == 0 ? fd : -1;
}

static int count_tasks(int argc, char **argv)
{
	if (argc < 2)
		return 0;
	if (argv[1][0] < '0' || argv[1][0] > '0' + AGENT_TASKS_MAX || argv[1][1] != '\0')
		return -EINVAL;
	return argv[1][0] - '0';
}

/* How many files a program may have open; 0 when the warden does not say. */
static uint32_t open_files(int argc, char **argv)
{
	return argc < 3 ? 0 : (uint32_t)strtoul(argv[2], NULL, 10);
}

static int adopt_descriptors(int n_tasks)
{
	sandbox.stream = adopt(AGENT_FD_STREAM);
	sandbox.handover = adopt(AGENT_FD_HANDOVER);
	notify_init(&sandbox.notify, adopt(AGENT_FD_NOTIFY));
	for (int i = 0; i < n_tasks; i++) {
		sandbox.tasks[i] = adopt(AGENT_FD_TASKS + i);
		if (sandbox.tasks[i] < 0)
			return -EBADF;
	}
	sandbox.n_tasks = (unsigned)n_tasks;
	return sandbox.stream < 0 ? -EBADF : fd_set_nonblocking(sandbox.stream, true);
}

/* Nothing of ours keeps a pipe of the warden's open. */
static int null_standard_streams(void)
{
	int null = open("/dev/null", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (null < 0)
		return -errno;
	for (int fd = 0; fd <= 2; fd++)
		if (null != fd && dup2(null, fd) < 0)
			return -errno;
	if (null > 2)
		close(null);
	return 0;
}

static int watch_children(void)
{
	sigset_t children;

	/* Blocked, and so queued for the descriptor even though PID 1 ignores it otherwise. */
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_SETMASK, &children, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sandbox.signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	return sandbox.signals < 0 ? -errno : 0;
}

/* Landlock alone forbids the canary; so what open() says of it says whether Landlock holds. */
static uint32_t try_canary(void)
{
	auto_close int fd = open(AGENT_CANARY, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? (uint32_t)errno : 0;
}

static void say_hello(void)
{
	struct pack pack = out_begin(&sandbox.out);

	pack_u32(&pack, AGENT_WIRE_VERSION);
	pack_u32(&pack, try_canary());
	pack_u32(&pack, (uint32_t)getpid());
	out_end(&sandbox.out, AGENT_HELLO, 0, &pack);
}

int main(int argc, char **argv)
{
	int n_tasks = count_tasks(argc, argv);

	if (n_tasks < 0 || adopt_descriptors(n_tasks) < 0 || null_standard_streams() < 0 ||
	    watch_children() < 0 || chdir("/") < 0)
		_exit(EXIT_FAILURE);
	sandbox.open_files = open_files(argc, argv);
	umask(022);
	for (uint32_t i = 0; i < AGENT_CHANNELS; i++)
		sandbox.channels[i].id = i + 1;
	frame_reader_init(&sandbox.reader, sandbox.input, sizeof(sandbox.input));

	say_hello();
	if (out_flush(&sandbox.out, sandbox.stream) < 0)
		_exit(EXIT_FAILURE);
	_exit(loop_run(&sandbox) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}
