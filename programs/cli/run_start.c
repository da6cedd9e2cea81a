/* SPDX-License-Identifier: Apache-2.0
 *
 * The beginning and the end of a run's sandbox. */
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "run.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define SETUP_MS 60000

void run_cancel(struct run *run, int signal)
{
	struct err err;

	if (run->ending.cancelled)
		return;
	run->ending.cancelled = true;
	run->ending.cancel_signal = signal;
	/* When this cannot be sent, the loop's grace ends in warden_kill(). */
	if (run->agent_is_there)
		(void)link_signal(&run->link, 0, SIGKILL, SCOPE_ALL, &err);
}

void run_take_signals(struct run *run, uint32_t channel)
{
	struct signalfd_siginfo info;
	struct err err;

	while (read(run->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int signal = (int)info.ssi_signo;
		if (signal != SIGINT || channel == 0 || run->ending.interrupted) {
			run_cancel(run, signal);
			continue;
		}
		run->ending.interrupted = true;
		(void)link_signal(&run->link, channel, SIGINT, SCOPE_GROUP, &err);
	}
}

static int digest_inputs(struct job *job, struct err *err)
{
	for (size_t i = 0; i < job->n_inputs; i++) {
		struct job_input *input = &job->inputs[i];
		auto_close int fd = open(input->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		int r = fd < 0 ? -errno : digest_of_fd(fd, input->sha256, &input->bytes);
		if (r < 0)
			return err_errno(err, -r, "read the input '%.256s'", input->path);
	}
	return 0;
}

/* The uid is a fact; the name is the password file's word for it. */
static void find_user(struct run *run)
{
	const struct passwd *me = getpwuid(getuid());

	if (me)
		snprintf(run->user, sizeof(run->user), "%s", me->pw_name);
}

static int ask(struct run *run, struct err *err)
{
	char program[PATH_MAX];
	auto_free struct warden_create *create = calloc(1, sizeof(*create));

	if (!create)
		return err_errno(err, ENOMEM, "describe the sandbox");
	/* Offset 0 is the empty string. */
	create->strings_len = 1;
	int r = job_fill_create(run->job, create, err);
	if (r >= 0)
		r = state_find_program(program, "cay-warden", "CAY_WARDEN", err);
	if (r >= 0)
		r = warden_spawn(&run->warden, program, run->state, 1, err);
	run->times.spawned = clock_mono_us();
	return r < 0 ? r : warden_create_send(&run->warden, run->sandbox_id, create, err);
}

/* Until the warden has answered, or somebody wants to stop. */
static int wait_answer(struct run *run, struct err *err)
{
	struct pollfd polls[] = { { run->warden.fd, POLLIN, 0 }, { run->signal_fd, POLLIN, 0 } };
	int r;

	do {
		r = poll(polls, ARRAY_LEN(polls), SETUP_MS);
	} while (r < 0 && errno == EINTR);
	if (r == 0)
		return err_make(err, ERR_TIMEOUT, "the sandbox was not ready after %d s",
				SETUP_MS / 1000);
	if (polls[1].revents) {
		run_take_signals(run, 0);
		return err_make(err, ERR_CONFLICT, "stopped by a signal");
	}
	return 0;
}

/* The agent's first word: Landlock forbade it the canary.  Before that nothing of the user's is
 * sent. */
static int hear_hello(struct run *run, struct err *err)
{
	struct agent_message message;
	int r = link_wait(&run->link, SETUP_MS, &message, err);

	if (r < 0)
		return r;
	if (message.type != AGENT_HELLO)
		return err_make(err, ERR_PROTOCOL, "the agent did not say hello");
	if ((run->facts.layers_held & 1u << LAYER_LANDLOCK) && message.hello.canary_errno != EACCES)
		return err_make(err, ERR_SETUP, "the layer 'landlock' did not take hold");
	return 0;
}

static int start(struct run *run, struct err *err)
{
	int agent_fd = -1;
	int r = ask(run, err);

	/* While the warden works: what takes time and does not need it. */
	find_user(run);
	if (r >= 0)
		r = receipts_open(run->state, &run->receipts, err);
	if (r >= 0)
		r = digest_inputs(run->job, err);
	if (r >= 0)
		r = wait_answer(run, err);
	if (r >= 0)
		r = warden_create_recv(&run->warden, &run->facts, &agent_fd, err);
	if (r < 0)
		return r;
	run->has_facts = true;
	run->ending.by = run->facts.by;
	r = link_init(&run->link, agent_fd, run->signal_fd, err);
	if (r >= 0)
		r = hear_hello(run, err);
	run->agent_is_there = r >= 0;
	run->times.sandbox = clock_mono_us();
	return r;
}

/* A stream that ended says nothing to a person. */
static int tell_gone(struct err *err)
{
	struct err was = *err;

	return err_make(err, ERR_SETUP, "the sandbox was gone before it was ready (%.400s)",
			was.text);
}

int run_start(struct run *run, struct err *err)
{
	run->warden = (struct warden){ .fd = -1, .pid = -1 };
	run->link.fd = -1;
	int r = start(run, err);

	if (r < 0 && err->errnum == EPIPE)
		r = tell_gone(err);
	if (r < 0 && !run->ending.cancelled) {
		run->ending.setup_failed = true;
		run->ending.setup = *err;
	}
	return r;
}

/* A watcher that only looks now and then misses a short run.  Then the agent's word is better than
 * nothing; where the kernel counts, it has more than this anyway. */
static void floor_usage(struct ending *ending)
{
	struct usage *usage = &ending->usage;

	if (!ending->is_over)
		return;
	if (usage->cpu_us < ending->cpu_us && ending->by.cpu_time == BY_WATCHER)
		usage->cpu_us = ending->cpu_us;
	if (usage->peak_memory_bytes < ending->max_rss_bytes && ending->by.memory == BY_WATCHER)
		usage->peak_memory_bytes = ending->max_rss_bytes;
	if (usage->peak_pids == 0)
		usage->peak_pids = 1;
}

void run_stop(struct run *run)
{
	struct usage usage;
	struct err err;

	if (run->has_facts && warden_destroy(&run->warden, run->sandbox_id, &usage, &err) >= 0) {
		run->ending.usage = usage;
		floor_usage(&run->ending);
	}
	link_finish(&run->link);
	run->agent_is_there = false;
	/* It may go while the receipt is written; warden_finish() waits for it. */
	if (run->warden.fd >= 0)
		(void)shutdown(run->warden.fd, SHUT_WR);
	run->times.stopped = clock_mono_us();
}
