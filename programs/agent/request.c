/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include "base/auto.h"

#include <string.h>

#define EXEC_FLAGS (EXEC_STDIN | EXEC_MERGED | EXEC_PTY)
#define WRITE_FLAGS (WRITE_EXCLUSIVE | WRITE_PARENTS)
#define SIGNAL_MAX 64
#define TERMINAL_MAX 65535

struct parse {
	struct unpack in;
	struct request_space *space;
	struct request *request;
};

typedef int parse_fn(struct parse *parse, struct err *err);

/* A copy that ends with NUL. */
static char *take_text(struct parse *parse, size_t max)
{
	struct request_space *space = parse->space;
	size_t len;
	const char *text = unpack_text(&parse->in, max, &len);

	if (parse->in.bad || len >= sizeof(space->text) - space->used) {
		char *empty = &space->text[sizeof(space->text) - 1];
		parse->in.bad = true;
		*empty = '\0';
		return empty;
	}
	char *copy = space->text + space->used;
	memcpy(copy, text, len);
	copy[len] = '\0';
	space->used += len + 1;
	return copy;
}

static uint32_t take_texts(struct parse *parse, char **ret_texts)
{
	uint32_t n = unpack_u32(&parse->in);

	if (n > AGENT_ARGS_MAX) {
		parse->in.bad = true;
		n = 0;
	}
	for (uint32_t i = 0; i < n && !parse->in.bad; i++)
		ret_texts[i] = take_text(parse, AGENT_ARGV_MAX);
	if (parse->in.bad)
		n = 0;
	ret_texts[n] = NULL;
	return n;
}

static int check_environment(char *const *envp, struct err *err)
{
	for (; *envp; envp++)
		if (!strchr(*envp, '=') || **envp == '=')
			return err_make(err, ERR_INVALID, "'%.64s' is not NAME=VALUE", *envp);
	return 0;
}

static int parse_exec(struct parse *parse, struct err *err)
{
	struct request *r = parse->request;

	r->exec.flags = unpack_u32(&parse->in);
	r->exec.argv = parse->space->argv;
	r->exec.envp = parse->space->envp;
	uint32_t argc = take_texts(parse, r->exec.argv);
	take_texts(parse, r->exec.envp);
	r->exec.cwd = take_text(parse, AGENT_PATH_MAX);
	if (r->exec.flags & EXEC_PTY) {
		r->exec.rows = unpack_u32(&parse->in);
		r->exec.columns = unpack_u32(&parse->in);
	}
	if (parse->in.bad)
		return 0;
	if (r->exec.flags & ~EXEC_FLAGS)
		return err_make(err, ERR_INVALID, "unknown flags %#x", r->exec.flags);
	if (argc == 0 || r->exec.argv[0][0] == '\0')
		return err_make(err, ERR_INVALID, "there is no program to start");
	if (r->exec.cwd[0] != '/')
		return err_make(err, ERR_INVALID, "the working directory '%.64s' is not absolute",
				r->exec.cwd);
	if (r->exec.rows > TERMINAL_MAX || r->exec.columns > TERMINAL_MAX)
		return err_make(err, ERR_INVALID, "a terminal of %u by %u", r->exec.rows,
				r->exec.columns);
	return check_environment(r->exec.envp, err);
}

static int parse_data(struct parse *parse, struct err *err)
{
	(void)err;
	parse->request->data.data = unpack_rest(&parse->in, &parse->request->data.len);
	return 0;
}

static int parse_nothing(struct parse *parse, struct err *err)
{
	(void)parse, (void)err;
	return 0;
}

static int parse_signal(struct parse *parse, struct err *err)
{
	uint32_t number = unpack_u32(&parse->in);

	parse->request->signal.scope = unpack_u32(&parse->in);
	parse->request->signal.number = (int)(number & 0x7f);
	if (number == 0 || number > SIGNAL_MAX || parse->request->signal.scope > SCOPE_ALL)
		return err_make(err, ERR_INVALID, "signal %u to scope %u", number,
				parse->request->signal.scope);
	return 0;
}

static int parse_credit(struct parse *parse, struct err *err)
{
	(void)err;
	parse->request->credit = unpack_u32(&parse->in);
	return 0;
}

static int check_path(const struct parse *parse, const char *path, struct err *err)
{
	if (!parse->in.bad && path[0] == '\0')
		return err_make(err, ERR_INVALID, "the path is empty");
	return 0;
}

static int parse_read(struct parse *parse, struct err *err)
{
	struct request *r = parse->request;

	r->read.path = take_text(parse, AGENT_PATH_MAX);
	r->read.offset = unpack_u64(&parse->in);
	r->read.length = unpack_u64(&parse->in);
	if (r->read.offset > INT64_MAX || r->read.length > INT64_MAX)
		return err_make(err, ERR_INVALID, "the range is out of bounds");
	return check_path(parse, r->read.path, err);
}

static int parse_write(struct parse *parse, struct err *err)
{
	struct request *r = parse->request;

	r->write.path = take_text(parse, AGENT_PATH_MAX);
	r->write.mode = unpack_u32(&parse->in);
	r->write.flags = unpack_u32(&parse->in);
	if (r->write.mode & ~0777u)
		return err_make(err, ERR_INVALID, "mode %#o is more than 0777", r->write.mode);
	if (r->write.flags & ~WRITE_FLAGS)
		return err_make(err, ERR_INVALID, "unknown flags %#x", r->write.flags);
	return check_path(parse, r->write.path, err);
}

static int parse_list(struct parse *parse, struct err *err)
{
	struct request *r = parse->request;

	r->list.path = take_text(parse, AGENT_PATH_MAX);
	r->list.depth = unpack_u32(&parse->in);
	r->list.max = unpack_u32(&parse->in);
	if (r->list.depth > AGENT_LIST_DEPTH_MAX)
		return err_make(err, ERR_LIMIT, "a list is at most %d levels deep",
				AGENT_LIST_DEPTH_MAX);
	if (r->list.max > AGENT_LIST_ENTRIES_MAX)
		return err_make(err, ERR_LIMIT, "a list has at most %d entries",
				AGENT_LIST_ENTRIES_MAX);
	return check_path(parse, r->list.path, err);
}

static int parse_resize(struct parse *parse, struct err *err)
{
	struct request *r = parse->request;

	r->resize.rows = unpack_u32(&parse->in);
	r->resize.columns = unpack_u32(&parse->in);
	if (r->resize.rows > TERMINAL_MAX || r->resize.columns > TERMINAL_MAX)
		return err_make(err, ERR_INVALID, "a terminal of %u by %u", r->resize.rows,
				r->resize.columns);
	return 0;
}

static int parse_done(struct parse *parse, struct err *err)
{
	(void)err;
	parse->request->done = unpack_u64(&parse->in);
	return 0;
}

/* Everything that a client can ask.  `on_agent`: channel 0 will do. */
static const struct {
	bool on_agent;
	parse_fn *parse;
} frames[] = {
	[AGENT_DATA] = { false, parse_data },         [AGENT_DONE] = { false, parse_done },
	[AGENT_EXEC] = { false, parse_exec },         [AGENT_STDIN] = { false, parse_data },
	[AGENT_STDIN_EOF] = { false, parse_nothing }, [AGENT_SIGNAL] = { true, parse_signal },
	[AGENT_CREDIT] = { false, parse_credit },     [AGENT_READ] = { false, parse_read },
	[AGENT_WRITE] = { false, parse_write },       [AGENT_LIST] = { false, parse_list },
	[AGENT_PING] = { true, parse_nothing },       [AGENT_RESIZE] = { false, parse_resize },
	[AGENT_CANCEL] = { false, parse_nothing },
};

int request_parse(const struct frame *frame, struct request_space *space,
		  struct request *ret_request, struct err *err)
{
	struct request request = { .type = frame->type, .channel = frame->channel };
	struct parse parse = { .in = { .data = frame->payload, .len = frame->len },
			       .space = space,
			       .request = &request };

	if (frame->type >= ARRAY_LEN(frames) || !frames[frame->type].parse)
		return err_make(err, ERR_PROTOCOL, "there is no frame of type %u", frame->type);
	if (frame->channel > AGENT_CHANNELS ||
	    (frame->channel == 0 && !frames[frame->type].on_agent))
		return err_make(err, ERR_PROTOCOL, "channel %u for a frame of type %u",
				frame->channel, frame->type);
	space->used = 0;
	int r = frames[frame->type].parse(&parse, err);
	if (!unpack_done(&parse.in))
		return err_make(err, ERR_PROTOCOL, "a malformed frame of type %u", frame->type);
	if (r < 0)
		return r;
	*ret_request = request;
	return 0;
}
