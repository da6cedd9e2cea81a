/* SPDX-License-Identifier: Apache-2.0
 *
 * Not ending when one should: signals, survivors, too many children. */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void kill_all(int argc, char **argv)
{
	int status = 0;
	pid_t child = fork();

	(void)argc;
	(void)argv;
	while (child == 0)
		pause();
	usleep(20000);
	/* All of this namespace but its init and ourselves. */
	WORKED(kill(-1, SIGKILL));
	waitpid(child, &status, 0);
	if (!WIFSIGNALED(status))
		fail("a child of ours lived on");
	for (pid_t pid = 2; pid < 32768; pid += 7)
		if (pid != getpid())
			FAILED(kill(pid, SIGKILL));
}

static void signal_init(int argc, char **argv)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	siginfo_t info = { .si_code = SI_QUEUE };

	(void)argc;
	(void)argv;
	for (int sig = 1; sig <= 64; sig++) {
		(void)kill(1, sig);
		(void)syscall(SYS_tgkill, 1, 1, sig);
		(void)syscall(SYS_tkill, 1, sig);
		info.si_signo = sig;
		(void)syscall(SYS_rt_sigqueueinfo, 1, sig, &info);
		(void)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
	}
	usleep(100000);
	if (kill(1, 0) < 0 && errno == ESRCH)
		fail("the init of the sandbox is gone");
	/* That our answer arrives at all shows that it is not stopped. */
}

/* Leaves a process that wants to live for ever; the argument is how it can be found. */
static void survive(int argc, char **argv)
{
	const char *token = argc > 0 ? argv[0] : "token";
	int ready[2];
	char byte;

	/* The read ends when the survivor has become a program of its own. */
	if (pipe2(ready, O_CLOEXEC) < 0 || fork() != 0) {
		close(ready[1]);
		(void)!read(ready[0], &byte, 1);
		return;
	}
	if (setsid() < 0 || fork() != 0)
		_exit(0);
	for (int sig = 1; sig <= 64; sig++)
		signal(sig, SIG_IGN);
	execl("/proc/self/exe", "survivor", "linger", token, NULL);
	_exit(1);
}

/* Holds everything open, for a minute at most. */
static void linger(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (argc > 1) {
		printf("ready\n");
		fflush(stdout);
	}
	for (int i = 0; i < 600; i++)
		usleep(100000);
}

/* The main process ends at once; its child keeps stdout. */
static void hold_output(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (fork() == 0) {
		for (int i = 0; i < 300; i++)
			usleep(100000);
		_exit(0);
	}
}

static void stop_all(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			raise(SIGSTOP);
			_exit(0);
		}
	raise(SIGSTOP);
	fail("it went on after SIGSTOP");
}

static void spin(int sig)
{
	(void)sig;
	for (volatile unsigned long i = 0; i < 1ul << 40; i++)
		;
}

/* Until the deadline, whatever anybody sends. */
static void ignore_all(int argc, char **argv)
{
	sigset_t all;

	(void)argc;
	(void)argv;
	for (int sig = 1; sig <= 64; sig++)
		signal(sig, sig % 2 ? SIG_IGN : spin);
	signal(SIGUSR1, spin);
	sigfillset(&all);
	if (fork() == 0) {
		sigprocmask(SIG_SETMASK, &all, NULL);
		spin(0);
	}
	raise(SIGUSR1);
}

static bool bomb_once(unsigned *ret_forks)
{
	for (unsigned i = 0; i < 5000; i++) {
		pid_t child = fork();

		while (child == 0)
			pause();
		if (child < 0) {
			*ret_forks = i;
			return errno == EAGAIN;
		}
	}
	*ret_forks = 5000;
	return false;
}

/* The argument is the limit. */
static void bomb(int argc, char **argv)
{
	unsigned limit = argc > 0 ? (unsigned)atoi(argv[0]) : 128, forks = 0;

	if (!bomb_once(&forks))
		fail("fork %u did not end with EAGAIN: %s", forks, strerror(errno));
	if (forks > limit)
		fail("%u children with a limit of %u", forks, limit);
	kill(-1, SIGKILL);
	while (wait(NULL) > 0)
		;
	if (fork() == 0)
		_exit(0);
	WORKED(wait(NULL));
}

/* Children that fork children, all of them as fast as they can, until the deadline. */
static void bomb_forever(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (;;)
		if (fork() < 0)
			usleep(1000);
}

static void die(int argc, char **argv)
{
	int sig = argc > 0 ? atoi(argv[0]) : SIGKILL;

	signal(sig, SIG_DFL);
	raise(sig);
	if (sig != SIGCHLD && sig != SIGCONT && sig != SIGURG && sig != SIGWINCH)
		fail("still alive after signal %d", sig);
}

const struct probe signal_probes[] = {
	{ "D028", kill_all, false },
	{ "D029", signal_init, false },
	{ "D030", survive, false },
	{ "linger", linger, HARMLESS },
	{ "D031", hold_output, false },
	{ "D032", stop_all, false },
	{ "D033", ignore_all, false },
	{ "D034", bomb, false },
	{ "D034-forever", bomb_forever, false },
	{ "D049-signal", die, HARMLESS },
	{ NULL, NULL, false },
};
