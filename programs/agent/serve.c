/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include "exec.h"
#include "files.h"
#include "process.h"
#include "pty.h"
#include "reap.h"

#include "base/auto.h"

#include <errno.h>

typedef int serve_fn(struct sandbox *sandbox, struct channel *channel,
		     const struct request *request, struct err *err);

static int serve_exec(struct sandbox *sandbox, struct channel *channel,
		      const struct request *request, struct err *err)
{
	if (sandbox->killing.active)
		return err_make(err, ERR_CONFLICT, "everything is being stopped");
	return exec_start(sandbox, channel, request, err);
}

static int serve_stdin(struct sandbox *sandbox, struct channel *channel,
		       const struct request *request, struct err *err)
{
	(void)sandbox;
	return process_feed(channel, request->data.data, request->data.len, err);
}

static int serve_stdin_eof(struct sandbox *sandbox, struct channel *channel,
			   const struct request *request, struct err *err)
{
	(void)sandbox, (void)request, (void)err;
	process_feed_eof(channel);
	return 0;
}

static int serve_signal(struct sandbox *sandbox, struct channel *channel,
			const struct request *request, struct err *err)
{
	int number = request->signal.number;

	if (request->signal.scope == SCOPE_ALL)
		return reap_signal_all(sandbox, number, err);
	if (!channel || channel->kind != CHANNEL_PROCESS)
		return 0; /* it has just ended */
	int r = process_signal(channel, number, request->signal.scope);
	return r < 0 ? err_errno(err, -r, "send signal %d", number) : 0;
}

static int serve_credit(struct sandbox *sandbox, struct channel *channel,
			const struct request *request, struct err *err)
{
	(void)sandbox, (void)err;
	if (channel->kind == CHANNEL_FREE)
		return 0;
	uint32_t most = UINT32_MAX - channel->credit;
	channel->credit += request->credit < most ? request->credit : most;
	return 0;
}

static int serve_read(struct sandbox *sandbox, struct channel *channel,
		      const struct request *request, struct err *err)
{
	return files_read_start(sandbox, channel, request, err);
}

static int serve_write(struct sandbox *sandbox, struct channel *channel,
		       const struct request *request, struct err *err)
{
	(void)sandbox;
	return files_write_start(channel, request, err);
}

static int serve_data(struct sandbox *sandbox, struct channel *channel,
		      const struct request *request, struct err *err)
{
	(void)sandbox;
	return files_write_data(channel, request->data.data, request->data.len, err);
}

static int serve_done(struct sandbox *sandbox, struct channel *channel,
		      const struct request *request, struct err *err)
{
	return files_write_done(sandbox, channel, request->done, err);
}

static int serve_list(struct sandbox *sandbox, struct channel *channel,
		      const struct request *request, struct err *err)
{
	return list_start(sandbox, channel, request, err);
}

static int serve_ping(struct sandbox *sandbox, struct channel *channel,
		      const struct request *request, struct err *err)
{
	struct pack pack = out_begin(&sandbox->out);

	(void)channel, (void)request, (void)err;
	out_end(&sandbox->out, AGENT_PONG, 0, &pack);
	return 0;
}

static int serve_resize(struct sandbox *sandbox, struct channel *channel,
			const struct request *request, struct err *err)
{
	(void)sandbox;
	if (!channel->process.is_pty || channel->process.sources[0].fd < 0)
		return 0;
	int r = pty_resize(channel->process.sources[0].fd, request->resize.rows,
			   request->resize.columns);
	return r < 0 ? err_errno(err, -r, "resize the terminal") : 0;
}

static int serve_cancel(struct sandbox *sandbox, struct channel *channel,
			const struct request *request, struct err *err)
{
	(void)sandbox, (void)request;
	switch (channel->kind) {
	case CHANNEL_READ:
	case CHANNEL_WRITE:
		files_finish(channel);
		return err_errno(err, ECANCELED, "the transfer was given up");
	case CHANNEL_LIST:
		list_finish(channel);
		return err_errno(err, ECANCELED, "the list was given up");
	default:
		return 0;
	}
}

/* What a channel must be for a frame to be for it. */
enum wants {
	WANTS_NOTHING,
	WANTS_FREE, /* the frame begins something; a failure is its end */
	WANTS_PROCESS,
	WANTS_WRITE,
};

/* Everything that a client can make the agent do is in this table. */
static const struct {
	enum wants wants;
	serve_fn *serve;
} frames[] = {
	[AGENT_EXEC] = { WANTS_FREE, serve_exec },
	[AGENT_READ] = { WANTS_FREE, serve_read },
	[AGENT_WRITE] = { WANTS_FREE, serve_write },
	[AGENT_LIST] = { WANTS_FREE, serve_list },
	[AGENT_STDIN] = { WANTS_PROCESS, serve_stdin },
	[AGENT_STDIN_EOF] = { WANTS_PROCESS, serve_stdin_eof },
	[AGENT_RESIZE] = { WANTS_PROCESS, serve_resize },
	[AGENT_DATA] = { WANTS_WRITE, serve_data },
	[AGENT_DONE] = { WANTS_WRITE, serve_done },
	[AGENT_SIGNAL] = { WANTS_NOTHING, serve_signal },
	[AGENT_CREDIT] = { WANTS_NOTHING, serve_credit },
	[AGENT_PING] = { WANTS_NOTHING, serve_ping },
	[AGENT_CANCEL] = { WANTS_NOTHING, serve_cancel },
};

static bool is_for(const struct channel *channel, enum wants wants)
{
	static const enum channel_kind kinds[] = { [WANTS_FREE] = CHANNEL_FREE,
						   [WANTS_PROCESS] = CHANNEL_PROCESS,
						   [WANTS_WRITE] = CHANNEL_WRITE };

	return wants == WANTS_NOTHING || channel->kind == kinds[wants];
}

static void begin(struct channel *channel)
{
	channel->credit = 0;
	channel->ready = 0;
	channel->window = AGENT_STDIN_WINDOW;
	channel->owed = 0;
	channel->inbox_start = channel->inbox_len = 0;
}

/* A failure ends the channel when there is nothing (any more) behind it; a complaint about a
 * frame goes to channel 0, so that it cannot be taken for the end of a process. */
static void serve_request(struct sandbox *sandbox, const struct request *request)
{
	struct channel *channel =
		request->channel > 0 ? &sandbox->channels[request->channel - 1] : NULL;
	enum wants wants = frames[request->type].wants;
	struct err err;

	if (channel && !is_for(channel, wants)) {
		if (channel->kind == CHANNEL_FREE)
			return; /* it has just ended */
		err_make(&err, ERR_CONFLICT, "channel %u is busy with something else", channel->id);
		out_failed(&sandbox->out, 0, &err);
		return;
	}
	bool was_free = channel && channel->kind == CHANNEL_FREE;
	if (wants == WANTS_FREE)
		begin(channel);
	if (frames[request->type].serve(sandbox, channel, request, &err) == 0)
		return;
	bool ended = channel && channel->kind == CHANNEL_FREE && (!was_free || wants == WANTS_FREE);
	out_failed(&sandbox->out, ended ? channel->id : 0, &err);
}

/* A malformed frame that would have begun something must still be answered on its channel. */
static void refuse(struct sandbox *sandbox, const struct frame *frame, const struct err *err)
{
	bool begins = frame->type < ARRAY_LEN(frames) && frames[frame->type].wants == WANTS_FREE;
	bool is_free = frame->channel > 0 && frame->channel <= AGENT_CHANNELS &&
		       sandbox->channels[frame->channel - 1].kind == CHANNEL_FREE;

	out_failed(&sandbox->out, begins && is_free ? frame->channel : 0, err);
}

int serve_frames(struct sandbox *sandbox)
{
	while (out_is_open(&sandbox->out)) {
		struct request request;
		struct frame frame;
		struct err err;
		int r = frame_next(&sandbox->reader, &frame, &err);
		if (r <= 0)
			return r;
		if (request_parse(&frame, &sandbox->space, &request, &err) < 0)
			refuse(sandbox, &frame, &err);
		else
			serve_request(sandbox, &request);
	}
	return 0;
}

static void pump(struct sandbox *sandbox, struct channel *channel)
{
	switch (channel->kind) {
	case CHANNEL_PROCESS:
		process_pump(sandbox, channel);
		break;
	case CHANNEL_READ:
		files_read_pump(sandbox, channel);
		break;
	case CHANNEL_WRITE:
		channel_return_credit(channel, &sandbox->out);
		break;
	case CHANNEL_LIST:
		list_pump(sandbox, channel);
		break;
	case CHANNEL_FREE:
		break;
	}
	channel->ready = 0;
}

void serve_channels(struct sandbox *sandbox)
{
	/* Somebody else is first each time, so that no channel has all of the room. */
	sandbox->first = (sandbox->first + 1) % AGENT_CHANNELS;
	for (unsigned i = 0; i < AGENT_CHANNELS; i++)
		pump(sandbox, &sandbox->channels[(sandbox->first + i) % AGENT_CHANNELS]);
}
