/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include "base/auto.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRAIN_MS 200
#define OOM_SCORE "500"
#define END_OF_INPUT "\x04" /* what a terminal takes for the end */

static void close_all(struct process *process)
{
	drop_fd(&process->report);
	drop_fd(&process->stdin_fd);
	drop_fd(&process->sources[0].fd);
	drop_fd(&process->sources[1].fd);
}

/* When the machine runs out of memory the code goes first.  The process cannot do this itself:
 * until its exec it is as closed as the agent, and its /proc files are root's. */
static void offer_to_oom_killer(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	(void)fd_write_text_at(AT_FDCWD, path, OOM_SCORE); /* a help, not a promise */
}

static void tell_started(struct sandbox *sandbox, struct channel *channel)
{
	struct pack pack = out_begin(&sandbox->out);

	pack_u32(&pack, (uint32_t)channel->process.pid);
	out_end(&sandbox->out, AGENT_STARTED, channel->id, &pack);
}

/* How exec went: one struct err, or the end of the pipe, which exec closed. */
static void hear_report(struct sandbox *sandbox, struct channel *channel)
{
	struct process *process = &channel->process;
	struct err err;
	ssize_t n = read(process->report, &err, sizeof(err));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(err)) {
		err_sanitize(&err);
		out_failed(&sandbox->out, channel->id, &err);
		close_all(process);
		channel_free(channel);
		return;
	}
	drop_fd(&process->report);
	if (!process->reaped)
		offer_to_oom_killer(process->pid);
	tell_started(sandbox, channel);
}

int process_feed(struct channel *channel, const uint8_t *data, size_t len, struct err *err)
{
	if (len > channel->window)
		return err_make(err, ERR_PROTOCOL, "%zu bytes where %u were allowed on channel %u",
				len, channel->window, channel->id);
	channel->window -= (uint32_t)len;
	if (channel->process.stdin_fd < 0 || channel->process.stdin_eof) {
		channel->owed += (uint32_t)len; /* nobody reads it; the client need not wait */
		return 0;
	}
	/* window + inbox never exceed the inbox, so there is room once it is in front. */
	memmove(channel->inbox, channel->inbox + channel->inbox_start, channel->inbox_len);
	channel->inbox_start = 0;
	memcpy(channel->inbox + channel->inbox_len, data, len);
	channel->inbox_len += len;
	return 0;
}

void process_feed_eof(struct channel *channel)
{
	channel->process.stdin_eof = true;
}

static void drop_inbox(struct channel *channel)
{
	channel->owed += (uint32_t)channel->inbox_len;
	channel->inbox_len = 0;
	drop_fd(&channel->process.stdin_fd);
}

static void end_stdin(struct channel *channel)
{
	struct process *process = &channel->process;

	if (process->is_pty)
		(void)!write(process->stdin_fd, END_OF_INPUT, 1); /* it may be gone already */
	drop_fd(&process->stdin_fd);
}

static void write_stdin(struct channel *channel)
{
	struct process *process = &channel->process;

	if (process->stdin_fd < 0)
		return;
	if (channel->inbox_len > 0) {
		ssize_t n = write(process->stdin_fd, channel->inbox + channel->inbox_start,
				  channel->inbox_len);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			drop_inbox(channel); /* the program has closed its stdin */
		if (n <= 0)
			return;
		channel->inbox_start += (size_t)n;
		channel->inbox_len -= (size_t)n;
		channel->owed += (uint32_t)n;
	}
	if (channel->inbox_len == 0 && process->stdin_eof)
		end_stdin(channel);
}

/* One read, one frame. */
static void forward(struct sandbox *sandbox, struct channel *channel, struct source *source)
{
	size_t limit = out_data_room(&sandbox->out);

	if (limit > channel->credit)
		limit = channel->credit;
	if (channel->process.last && limit > source->left)
		limit = source->left;
	if (source->fd < 0 || limit == 0)
		return;

	struct pack pack = out_begin(&sandbox->out);
	ssize_t n = read(source->fd, pack.data, limit);
	if (n < 0 && errno == EINTR)
		return;
	if (n < 0 && errno == EAGAIN && !channel->process.last)
		return;
	if (n <= 0) { /* a terminal ends with EIO */
		drop_fd(&source->fd);
		return;
	}
	pack.len = (size_t)n;
	out_end(&sandbox->out, source->frame, channel->id, &pack);
	channel->credit -= (uint32_t)n;
	if (channel->process.last) {
		source->left -= (size_t)n;
		if (source->left == 0)
			drop_fd(&source->fd);
	}
}

/* Without credit nothing is read, and so the end is not seen; but it needs no credit. */
static void close_if_at_end(struct source *source)
{
	struct pollfd p = { .fd = source->fd, .events = POLLIN };

	if (source->fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) &&
	    !(p.revents & POLLIN))
		drop_fd(&source->fd);
}

/* The deadline: only what is in the pipe now is still sent. */
static void take_last(struct process *process)
{
	process->last = true;
	for (size_t i = 0; i < ARRAY_LEN(process->sources); i++) {
		struct source *source = &process->sources[i];
		int left = 0;
		if (source->fd < 0)
			continue;
		if (ioctl(source->fd, FIONREAD, &left) < 0 || left <= 0)
			drop_fd(&source->fd);
		else
			source->left = (size_t)left;
	}
}

static void tell_exit(struct sandbox *sandbox, struct channel *channel)
{
	struct process *process = &channel->process;
	bool signaled = WIFSIGNALED(process->status);

	notify_tell(&sandbox->notify, &sandbox->out, sandbox->now_ms, true);
	if (!out_is_open(&sandbox->out))
		return;
	struct pack pack = out_begin(&sandbox->out);
	pack_u32(&pack, signaled);
	pack_u32(&pack,
		 (uint32_t)(signaled ? WTERMSIG(process->status) : WEXITSTATUS(process->status)));
	pack_u64(&pack, process->user_us);
	pack_u64(&pack, process->system_us);
	pack_u64(&pack, process->max_rss_kib);
	out_end(&sandbox->out, AGENT_EXIT, channel->id, &pack);
	close_all(process);
	channel_free(channel);
}

static void pump_sources(struct sandbox *sandbox, struct channel *channel)
{
	struct process *process = &channel->process;

	process->turn = !process->turn;
	for (unsigned i = 0; i < 2; i++) {
		struct source *source = &process->sources[i ^ process->turn];
		if ((channel->ready & source->ready) || process->last)
			forward(sandbox, channel, source);
		if (process->reaped && channel->credit == 0)
			close_if_at_end(source);
	}
}

void process_pump(struct sandbox *sandbox, struct channel *channel)
{
	struct process *process = &channel->process;

	if (!out_is_open(&sandbox->out))
		return;
	if (process->report >= 0) {
		if (process->reaped || (channel->ready & READY_REPORT))
			hear_report(sandbox, channel);
		if (channel->kind == CHANNEL_FREE || process->report >= 0)
			return;
	}
	write_stdin(channel);
	channel_return_credit(channel, &sandbox->out);
	pump_sources(sandbox, channel);
	if (process->reaped && !process->last && sandbox->now_ms >= process->drain_until_ms)
		take_last(process);
	if (process->reaped && process->sources[0].fd < 0 && process->sources[1].fd < 0 &&
	    out_is_open(&sandbox->out))
		tell_exit(sandbox, channel);
}

void process_ended(struct sandbox *sandbox, struct channel *channel, int status,
		   const struct rusage *usage)
{
	struct process *process = &channel->process;

	process->reaped = true;
	process->status = status;
	process->user_us =
		(uint64_t)usage->ru_utime.tv_sec * 1000000 + (uint64_t)usage->ru_utime.tv_usec;
	process->system_us =
		(uint64_t)usage->ru_stime.tv_sec * 1000000 + (uint64_t)usage->ru_stime.tv_usec;
	process->max_rss_kib = (uint64_t)usage->ru_maxrss;
	process->drain_until_ms = sandbox->now_ms + DRAIN_MS;
}

int process_signal(const struct channel *channel, int number, enum agent_scope scope)
{
	const struct process *process = &channel->process;
	pid_t target = scope == SCOPE_GROUP ? -process->pid : process->pid;

	/* Its number may belong to someone else once it was reaped; its group's only when all of
	 * the group are gone. */
	if (process->reaped && scope == SCOPE_PROCESS)
		return 0;
	return kill(target, number) < 0 && errno != ESRCH ? -errno : 0;
}

int64_t process_deadline(const struct channel *channel)
{
	const struct process *process = &channel->process;

	return process->reaped && !process->last ? process->drain_until_ms : INT64_MAX;
}
