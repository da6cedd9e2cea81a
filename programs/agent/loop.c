/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include "process.h"
#include "reap.h"
#include "serve.h"

#include "base/auto.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define OWN 3             /* stream, signals, listener */
#define PER_CHANNEL_MAX 3 /* a report, or stdin, stdout and stderr */
#define WAIT_MAX_MS 3600000

enum { AT_STREAM, AT_SIGNALS, AT_NOTIFY };

struct round {
	struct pollfd polls[OWN + AGENT_CHANNELS * PER_CHANNEL_MAX];
	struct {
		struct channel *channel;
		unsigned ready;
	} owners[OWN + AGENT_CHANNELS * PER_CHANNEL_MAX];
	nfds_t n;
};

static void watch(struct round *round, int fd, short events, struct channel *channel,
		  unsigned ready)
{
	round->polls[round->n] = (struct pollfd){ .fd = fd, .events = events };
	round->owners[round->n].channel = channel;
	round->owners[round->n].ready = ready;
	round->n++;
}

/* A descriptor that we would not read now must not be here at all: its POLLHUP would keep us
 * awake for nothing. */
static void watch_process(const struct sandbox *sandbox, struct round *round,
			  struct channel *channel)
{
	struct process *process = &channel->process;

	if (process->report >= 0) {
		watch(round, process->report, POLLIN, channel, READY_REPORT);
		return;
	}
	if (process->stdin_fd >= 0 && channel->inbox_len > 0)
		watch(round, process->stdin_fd, POLLOUT, channel, READY_STDIN);
	if (channel->credit == 0 || out_data_room(&sandbox->out) == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(process->sources); i++)
		if (process->sources[i].fd >= 0)
			watch(round, process->sources[i].fd, POLLIN, channel,
			      process->sources[i].ready);
}

static void collect(struct sandbox *sandbox, struct round *round)
{
	bool is_open = out_is_open(&sandbox->out);
	bool is_waiting = sandbox->out.start < sandbox->out.end;

	round->n = 0;
	watch(round, sandbox->stream, (short)((is_open ? POLLIN : 0) | (is_waiting ? POLLOUT : 0)),
	      NULL, 0);
	watch(round, sandbox->signals, POLLIN, NULL, 0);
	watch(round, notify_is_wanted(&sandbox->notify, sandbox->now_ms) ? sandbox->notify.fd : -1,
	      POLLIN, NULL, 0);
	for (unsigned i = 0; i < AGENT_CHANNELS; i++)
		if (sandbox->channels[i].kind == CHANNEL_PROCESS)
			watch_process(sandbox, round, &sandbox->channels[i]);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int timeout_ms(const struct sandbox *sandbox)
{
	/* Without room for a frame the client has to read first, whatever is due. */
	bool is_open = out_is_open(&sandbox->out);
	int64_t at = notify_deadline(&sandbox->notify, is_open);

	if (sandbox->again)
		return 0;
	if (is_open)
		at = earlier(at, reap_deadline(sandbox));
	for (unsigned i = 0; i < AGENT_CHANNELS && is_open; i++)
		if (sandbox->channels[i].kind == CHANNEL_PROCESS)
			at = earlier(at, process_deadline(&sandbox->channels[i]));
	if (at == INT64_MAX)
		return -1;
	int64_t wait = at - sandbox->now_ms;
	return wait < 0 ? 0 : (int)earlier(wait, WAIT_MAX_MS);
}

static void mark_ready(struct round *round)
{
	for (nfds_t i = OWN; i < round->n; i++)
		if (round->polls[i].revents)
			round->owners[i].channel->ready |= round->owners[i].ready;
}

static void clear_signals(int fd)
{
	struct signalfd_siginfo info[8];

	while (read(fd, info, sizeof(info)) == (ssize_t)sizeof(info))
		;
}

/* 1: go on.  0: the client is gone. */
static int hear_stream(struct sandbox *sandbox, short revents)
{
	if (!(revents & (POLLIN | POLLHUP | POLLERR)) || !out_is_open(&sandbox->out))
		return 1;
	int n = frame_fill(&sandbox->reader, sandbox->stream);
	if (n == -EAGAIN)
		return 1;
	return n <= 0 ? 0 : 1;
}

int loop_run(struct sandbox *sandbox)
{
	static struct round round;

	for (;;) {
		sandbox->now_ms = clock_mono_ms();
		collect(sandbox, &round);
		int wait = timeout_ms(sandbox);
		sandbox->again = false;
		if (poll(round.polls, round.n, wait) < 0 && errno != EINTR)
			return -errno;
		sandbox->now_ms = clock_mono_ms();

		mark_ready(&round);
		if (round.polls[AT_SIGNALS].revents)
			clear_signals(sandbox->signals);
		reap_all(sandbox);
		if (round.polls[AT_NOTIFY].revents)
			notify_answer(&sandbox->notify);
		if (!hear_stream(sandbox, round.polls[AT_STREAM].revents))
			return 0;
		int r = serve_frames(sandbox);
		if (r < 0)
			return r;
		reap_kill_pump(sandbox);
		serve_channels(sandbox);
		notify_tell(&sandbox->notify, &sandbox->out, sandbox->now_ms, false);
		if (out_flush(&sandbox->out, sandbox->stream) < 0)
			return 0;
	}
}
