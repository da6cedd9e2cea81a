/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/agent.h"

#include "base/auto.h"

#include <string.h>

#define ERRNO_MAX 4095
#define PID_MAX (1u << 22)

typedef bool decode_fn(struct unpack *in, struct agent_message *message);

static bool decode_hello(struct unpack *in, struct agent_message *message)
{
	message->hello.version = unpack_u32(in);
	message->hello.canary_errno = unpack_u32(in);
	message->hello.pid = unpack_u32(in);
	return message->hello.version == AGENT_WIRE_VERSION &&
	       message->hello.canary_errno <= ERRNO_MAX && message->hello.pid <= PID_MAX;
}

static bool decode_started(struct unpack *in, struct agent_message *message)
{
	message->started.pid = unpack_u32(in);
	return message->started.pid > 0 && message->started.pid <= PID_MAX;
}

static bool decode_data(struct unpack *in, struct agent_message *message)
{
	message->data.data = unpack_rest(in, &message->data.len);
	return true;
}

static bool decode_exit(struct unpack *in, struct agent_message *message)
{
	message->exit.signaled = unpack_u32(in);
	message->exit.value = unpack_u32(in);
	message->exit.user_us = unpack_u64(in);
	message->exit.system_us = unpack_u64(in);
	message->exit.max_rss_kib = unpack_u64(in);
	return message->exit.signaled <= 1 && message->exit.value <= 255;
}

static bool decode_failed(struct unpack *in, struct agent_message *message)
{
	struct err *failed = &message->failed;
	uint32_t kind = unpack_u32(in), errnum = unpack_u32(in);
	size_t len;
	const char *text = unpack_text(in, sizeof(failed->text) - 1, &len);

	failed->kind = kind < ERR_KINDS_ ? (int)kind : ERR_PROTOCOL;
	failed->errnum = errnum <= ERRNO_MAX ? (int)errnum : 0;
	memcpy(failed->text, text, len);
	failed->text[len] = '\0';
	err_sanitize(failed);
	return true;
}

static bool decode_denied(struct unpack *in, struct agent_message *message)
{
	size_t len;

	message->denied.count = unpack_u32(in);
	message->denied.pairs = unpack_rest(in, &len);
	return message->denied.count <= AGENT_DENIED_MAX && len == 8 * message->denied.count;
}

static bool decode_file(struct unpack *in, struct agent_message *message)
{
	message->file.size = unpack_u64(in);
	message->file.mode = unpack_u32(in);
	return message->file.size <= INT64_MAX && message->file.mode <= 07777;
}

/* Whoever joins the path to one of its own must stay below it: no "/x", "a//b", "." or "..". */
static bool is_relative(const char *path, size_t len)
{
	size_t start = 0;

	for (size_t i = 0; i <= len && len > 0; i++) {
		if (i < len && path[i] != '/')
			continue;
		size_t part = i - start;
		if (part == 0 || (part == 1 && path[start] == '.') ||
		    (part == 2 && memcmp(path + start, "..", 2) == 0))
			return false;
		start = i + 1;
	}
	return true;
}

static bool decode_entry(struct unpack *in, struct agent_message *message)
{
	message->entry.type = unpack_u32(in);
	message->entry.size = unpack_u64(in);
	message->entry.mode = unpack_u32(in);
	message->entry.mtime_ns = unpack_u64(in);
	message->entry.path = unpack_text(in, AGENT_PATH_MAX, &message->entry.path_len);

	uint32_t type = message->entry.type;
	return (type == 'f' || type == 'd' || type == 'l' || type == 'o') &&
	       message->entry.size <= INT64_MAX && message->entry.mode <= 07777 &&
	       is_relative(message->entry.path, message->entry.path_len);
}

static bool decode_done(struct unpack *in, struct agent_message *message)
{
	message->done.bytes = unpack_u64(in);
	return true;
}

static bool decode_credit(struct unpack *in, struct agent_message *message)
{
	message->credit.bytes = unpack_u32(in);
	return message->credit.bytes <= AGENT_STDIN_WINDOW;
}

static bool decode_nothing(struct unpack *in, struct agent_message *message)
{
	(void)in, (void)message;
	return true;
}

#define ON_AGENT (1u << 0)   /* may come on channel 0 */
#define ON_CHANNEL (1u << 1) /* may come on a channel that the client picked */

/* Everything that a client listens to. */
static const struct {
	unsigned where;
	decode_fn *decode;
} frames[] = {
	[AGENT_HELLO] = { ON_AGENT, decode_hello },
	[AGENT_STARTED] = { ON_CHANNEL, decode_started },
	[AGENT_STDOUT] = { ON_CHANNEL, decode_data },
	[AGENT_STDERR] = { ON_CHANNEL, decode_data },
	[AGENT_EXIT] = { ON_CHANNEL, decode_exit },
	[AGENT_FAILED] = { ON_AGENT | ON_CHANNEL, decode_failed },
	[AGENT_DENIED] = { ON_AGENT, decode_denied },
	[AGENT_FILE] = { ON_CHANNEL, decode_file },
	[AGENT_DATA] = { ON_CHANNEL, decode_data },
	[AGENT_DONE] = { ON_AGENT | ON_CHANNEL, decode_done },
	[AGENT_ENTRY] = { ON_CHANNEL, decode_entry },
	[AGENT_PONG] = { ON_AGENT, decode_nothing },
	[AGENT_CREDIT] = { ON_CHANNEL, decode_credit },
};

int agent_decode(const struct frame *frame, struct agent_message *ret_message, struct err *err)
{
	struct agent_message message = { .type = frame->type, .channel = frame->channel };
	struct unpack in = { .data = frame->payload, .len = frame->len };

	if (frame->type >= ARRAY_LEN(frames) || !frames[frame->type].decode)
		return err_make(err, ERR_PROTOCOL, "the agent sent a frame of type %u",
				frame->type);
	unsigned where = frame->channel == 0 ? ON_AGENT : ON_CHANNEL;
	if (frame->channel > AGENT_CHANNELS || !(frames[frame->type].where & where))
		return err_make(err, ERR_PROTOCOL,
				"the agent sent a frame of type %u on channel %u", frame->type,
				frame->channel);
	if (!frames[frame->type].decode(&in, &message) || !unpack_done(&in))
		return err_make(err, ERR_PROTOCOL, "the agent sent a malformed frame of type %u",
				frame->type);
	*ret_message = message;
	return 0;
}

static uint32_t pack_texts(struct pack *pack, const char *const *texts)
{
	size_t count_at = pack->len;
	uint32_t n = 0;

	pack_u32(pack, 0);
	for (; texts && texts[n] && !pack->bad; n++)
		pack_text(pack, texts[n]);
	if (!pack->bad) {
		struct pack count = { .data = pack->data + count_at, .size = 4 };
		pack_u32(&count, n);
	}
	return n;
}

int agent_pack_exec(struct pack *pack, const struct agent_exec *exec, struct err *err)
{
	pack_u32(pack, exec->flags);
	uint32_t n = pack_texts(pack, exec->argv);
	uint32_t m = pack_texts(pack, exec->envp);
	pack_text(pack, exec->cwd ? exec->cwd : "/");
	if (exec->flags & EXEC_PTY) {
		pack_u32(pack, exec->rows);
		pack_u32(pack, exec->columns);
	}
	if (pack->bad || pack->len > FRAME_PAYLOAD_MAX)
		return err_make(err, ERR_LIMIT,
				"arguments and environment are larger than %u bytes",
				AGENT_ARGV_MAX);
	if (n > AGENT_ARGS_MAX || m > AGENT_ARGS_MAX)
		return err_make(err, ERR_LIMIT, "more than %u arguments or variables",
				AGENT_ARGS_MAX);
	return 0;
}
