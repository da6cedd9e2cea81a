/* SPDX-License-Identifier: Apache-2.0 */
#include "run_pump.h"

#include "base/auto.h"
#include "base/clock.h"
#include "run.h"
#include "say.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define KILL_GRACE_MS 300 /* from SIGKILL to the agent's word that all is over */
#define TELL_MS 1000      /* what goes on for so long after Ctrl-C may not end by it */
#define WAIT_MAX_MS 3600000
#define STDIN_PIECE 65536
#define QUEUE_MAX 262144 /* do not read stdin while this much waits for the agent */

enum { POLL_AGENT, POLL_WARDEN, POLL_SIGNALS, POLL_STDIN, POLL_STDOUT, POLL_STDERR, POLLS };

struct pump {
	struct run *run;
	uint32_t channel;
	bool live; /* output goes to our own stdout and stderr as it comes */
	bool reads_stdin;
	size_t stdin_credit;
	uint32_t credit;      /* what the agent may still send */
	bool closed[STREAMS]; /* nobody reads it any more */
	bool over;
	int64_t tell_at_ms; /* when a person hears that Ctrl-C was passed on; 0: not yet known */
	bool told;
	int64_t kill_at_ms; /* when the agent had its chance; 0: nothing was killed */
};

static void add_denied(struct ending *ending, uint32_t nr, uint32_t times)
{
	size_t i = 0;

	while (i < ending->n_denied && ending->denied[i].nr != nr)
		i++;
	if (i == DENIED_MAX)
		return;
	if (i == ending->n_denied)
		ending->denied[ending->n_denied++] = (struct denied_call){ .nr = nr };
	ending->denied[i].times += times;
}

static void on_denied(struct pump *pump, const struct agent_message *message)
{
	struct unpack in = { .data = message->denied.pairs, .len = 8 * message->denied.count };

	for (uint32_t i = 0; i < message->denied.count; i++) {
		uint32_t nr = unpack_u32(&in);
		add_denied(&pump->run->ending, nr, unpack_u32(&in));
	}
}

static int on_output(struct pump *pump, const struct agent_message *message, struct err *err)
{
	int stream = message->type == AGENT_STDOUT ? STREAM_STDOUT : STREAM_STDERR;

	if (message->data.len > pump->credit)
		return err_make(err, ERR_PROTOCOL, "the agent sent more than it had credit for");
	pump->credit -= (uint32_t)message->data.len;
	/* Without memory for it the bytes count as dropped, and the run goes on. */
	(void)output_add(&pump->run->streams[stream], message->data.data, message->data.len);
	return 0;
}

static void on_failed(struct pump *pump, const struct agent_message *message)
{
	struct ending *ending = &pump->run->ending;
	const struct err *failed = &message->failed;

	pump->over = true;
	if (message->channel == pump->channel && failed->kind == ERR_NOT_FOUND) {
		ending->not_started = true;
		ending->start_errno = ENOENT;
	} else if (message->channel == pump->channel && failed->kind == ERR_SYSTEM) {
		ending->not_started = true;
		ending->start_errno = failed->errnum;
	} else {
		ending->setup_failed = true;
		ending->setup = *failed;
	}
}

static void on_ended(struct pump *pump, const struct agent_message *message)
{
	struct ending *ending = &pump->run->ending;

	pump->over = true;
	ending->is_over = true;
	ending->signaled = message->exit.signaled;
	ending->value = message->exit.value;
	ending->cpu_us = message->exit.user_us + message->exit.system_us;
	ending->max_rss_bytes = message->exit.max_rss_kib * 1024;
}

static int on_message(struct pump *pump, const struct agent_message *message, struct err *err)
{
	bool mine = message->channel == pump->channel;

	switch (message->type) {
	case AGENT_STDOUT:
	case AGENT_STDERR:
		return mine ? on_output(pump, message, err) : 0;
	case AGENT_EXIT:
		if (mine)
			on_ended(pump, message);
		return 0;
	case AGENT_FAILED:
		/* On channel 0 it only says that a signal came too late. */
		if (message->channel != 0)
			on_failed(pump, message);
		return 0;
	case AGENT_DENIED:
		on_denied(pump, message);
		return 0;
	case AGENT_CREDIT:
		if (mine)
			pump->stdin_credit += message->credit.bytes;
		return 0;
	default:
		return 0;
	}
}

static int read_agent(struct pump *pump, struct err *err)
{
	struct agent_message message;
	int r = link_fill(&pump->run->link, err);

	if (r < 0)
		return r;
	while (!pump->over && (r = link_next(&pump->run->link, &message, err)) > 0) {
		r = on_message(pump, &message, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

static int read_stdin(struct pump *pump, struct err *err)
{
	static uint8_t data[STDIN_PIECE];
	size_t want = pump->stdin_credit < sizeof(data) ? pump->stdin_credit : sizeof(data);
	ssize_t n = read(STDIN_FILENO, data, want);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	/* A stdin that cannot be read is at its end as far as the program is concerned. */
	if (n <= 0) {
		pump->reads_stdin = false;
		return link_send(&pump->run->link, AGENT_STDIN_EOF, pump->channel, NULL, 0, err);
	}
	pump->stdin_credit -= (size_t)n;
	return link_send(&pump->run->link, AGENT_STDIN, pump->channel, data, (size_t)n, err);
}

static void write_stream(struct pump *pump, int stream)
{
	int r = output_show(&pump->run->streams[stream],
			    stream == STREAM_STDOUT ? STDOUT_FILENO : STDERR_FILENO);

	if (r >= 0)
		return;
	pump->closed[stream] = true;
	if (r != -EPIPE)
		pump->run->write_errno = -r;
	/* `cay run ... | head`: the program would write for nobody until its time is over. */
	if (r == -EPIPE && stream == STREAM_STDOUT && !pump->over)
		run_cancel(pump->run, SIGPIPE);
}

/* Head bytes that we hold and that a person has not got yet. */
static size_t waiting(const struct pump *pump, int stream)
{
	return pump->live && !pump->closed[stream] ? output_waiting(&pump->run->streams[stream])
						   : 0;
}

/* What a stream may hold is bounded by its cap, so a slow reader of ours need not slow the
 * program. */
static int give_credit(struct pump *pump, struct err *err)
{
	if (pump->over || pump->credit > LINK_WINDOW / 2)
		return 0;
	uint32_t more = LINK_WINDOW - pump->credit;
	pump->credit += more;
	return link_credit(&pump->run->link, pump->channel, more, err);
}

static void take_warden_events(struct pump *pump)
{
	struct run *run = pump->run;
	struct warden_reply event;
	struct err err;

	for (;;) {
		int r = warden_event(&run->warden, &event, &err);
		if (r < 0) {
			run->ending.sandbox_lost = true;
			run->agent_is_there = false;
			pump->over = true;
			return;
		}
		if (event.event == WARDEN_EVENT_NONE)
			return;
		run->ending.usage = event.usage;
		/* Its last words may still be in the stream; they get their chance. */
		if (event.event == WARDEN_EVENT_ENDED && pump->kill_at_ms == 0)
			pump->kill_at_ms = clock_mono_ms() + KILL_GRACE_MS;
	}
}

/* A program that goes on after Ctrl-C looks as if nobody had heard it. */
static void check_interrupt(struct pump *pump, int64_t now)
{
	const struct ending *ending = &pump->run->ending;

	if (!ending->interrupted || ending->cancelled || pump->over || pump->told)
		return;
	if (pump->tell_at_ms == 0)
		pump->tell_at_ms = now + TELL_MS;
	if (now < pump->tell_at_ms)
		return;
	pump->told = true;
	if (isatty(STDERR_FILENO))
		say("interrupt passed on; Ctrl-C again ends the run");
}

static void check_clock(struct pump *pump)
{
	struct run *run = pump->run;
	int64_t now = clock_mono_ms();

	check_interrupt(pump, now);
	if (!pump->over && !run->ending.timed_out && !run->ending.cancelled &&
	    now >= run->deadline_ms) {
		struct err err;
		run->ending.timed_out = true;
		/* When even this cannot be sent, the grace below ends in warden_kill(). */
		(void)link_signal(&run->link, pump->channel, SIGKILL, SCOPE_ALL, &err);
	}
	bool killed = run->ending.timed_out || run->ending.cancelled;
	if (killed && pump->kill_at_ms == 0)
		pump->kill_at_ms = now + KILL_GRACE_MS;
	if (pump->kill_at_ms && now >= pump->kill_at_ms && !pump->over) {
		struct err err;
		(void)warden_kill(&run->warden, run->sandbox_id, &err);
		run->ending.sandbox_lost = true;
		run->agent_is_there = false;
		pump->over = true;
	}
}

static int poll_timeout(const struct pump *pump)
{
	int64_t until = pump->kill_at_ms ? pump->kill_at_ms : pump->run->deadline_ms;
	if (pump->tell_at_ms && !pump->told && pump->tell_at_ms < until)
		until = pump->tell_at_ms;
	int64_t left = until - clock_mono_ms();

	return left < 0 ? 0 : left > WAIT_MAX_MS ? WAIT_MAX_MS : (int)left;
}

static void set_polls(const struct pump *pump, struct pollfd polls[POLLS])
{
	const struct run *run = pump->run;
	size_t queued = run->link.out_end - run->link.out_start;
	bool wants_stdin = pump->reads_stdin && pump->stdin_credit > 0 && queued < QUEUE_MAX;

	polls[POLL_AGENT] =
		(struct pollfd){ run->link.fd, (short)(POLLIN | (queued ? POLLOUT : 0)), 0 };
	polls[POLL_WARDEN] = (struct pollfd){ run->warden.fd, POLLIN, 0 };
	polls[POLL_SIGNALS] = (struct pollfd){ run->signal_fd, POLLIN, 0 };
	polls[POLL_STDIN] = (struct pollfd){ wants_stdin ? STDIN_FILENO : -1, POLLIN, 0 };
	polls[POLL_STDOUT] =
		(struct pollfd){ waiting(pump, STREAM_STDOUT) ? STDOUT_FILENO : -1, POLLOUT, 0 };
	polls[POLL_STDERR] =
		(struct pollfd){ waiting(pump, STREAM_STDERR) ? STDERR_FILENO : -1, POLLOUT, 0 };
}

static int turn(struct pump *pump, struct err *err)
{
	struct pollfd polls[POLLS];
	struct run *run = pump->run;
	int r = 0;

	set_polls(pump, polls);
	if (poll(polls, POLLS, poll_timeout(pump)) < 0 && errno != EINTR)
		return err_errno(err, errno, "wait for the program");
	if (polls[POLL_SIGNALS].revents)
		run_take_signals(run, pump->channel);
	if (polls[POLL_AGENT].revents & POLLOUT)
		r = link_flush(&run->link, err);
	if (r >= 0 && (polls[POLL_AGENT].revents & ~POLLOUT))
		r = read_agent(pump, err);
	if (r >= 0 && polls[POLL_STDIN].revents && !pump->over)
		r = read_stdin(pump, err);
	if (polls[POLL_STDOUT].revents)
		write_stream(pump, STREAM_STDOUT);
	if (polls[POLL_STDERR].revents)
		write_stream(pump, STREAM_STDERR);
	if (r >= 0)
		r = give_credit(pump, err);
	if (!pump->over && polls[POLL_WARDEN].revents)
		take_warden_events(pump);
	check_clock(pump);
	return r;
}

/* The program is over; what it said shall still arrive, but not after its time. */
static void drain(struct pump *pump)
{
	struct run *run = pump->run;

	while (waiting(pump, STREAM_STDOUT) || waiting(pump, STREAM_STDERR)) {
		struct pollfd polls[POLLS];
		set_polls(pump, polls);
		polls[POLL_AGENT].fd = polls[POLL_WARDEN].fd = polls[POLL_STDIN].fd = -1;
		int64_t left = run->deadline_ms - clock_mono_ms();
		left = left < KILL_GRACE_MS ? KILL_GRACE_MS
		       : left > WAIT_MAX_MS ? WAIT_MAX_MS
					    : left;
		int r = poll(polls, POLLS, (int)left);
		if (r < 0 && errno != EINTR)
			return;
		if (r == 0 || polls[POLL_SIGNALS].revents)
			return;
		if (polls[POLL_STDOUT].revents)
			write_stream(pump, STREAM_STDOUT);
		if (polls[POLL_STDERR].revents)
			write_stream(pump, STREAM_STDERR);
	}
}

static int start(struct pump *pump, const struct agent_exec *exec, struct err *err)
{
	size_t size = FRAME_PAYLOAD_MAX;
	auto_free uint8_t *payload = malloc(size);
	struct pack pack = { .data = payload, .size = size };

	if (!payload)
		return err_errno(err, ENOMEM, "start the program");
	int r = agent_pack_exec(&pack, exec, err);
	if (r >= 0)
		r = link_queue(&pump->run->link, AGENT_EXEC, pump->channel, pack.data, pack.len,
			       err);
	return r < 0 ? r : give_credit(pump, err);
}

int pump_program(struct run *run, uint32_t channel, const struct agent_exec *exec, struct err *err)
{
	struct pump pump = {
		.run = run,
		.channel = channel,
		.live = !run->options->json,
		.reads_stdin = exec->flags & EXEC_STDIN,
		.stdin_credit = AGENT_STDIN_WINDOW,
	};
	int r = start(&pump, exec, err);

	while (r >= 0 && !pump.over)
		r = turn(&pump, err);
	/* An agent that goes away or breaks the rules ends the run; the cause says so. */
	if (r < 0) {
		run->ending.sandbox_lost = true;
		run->agent_is_there = false;
	}
	drain(&pump);
	return r;
}
