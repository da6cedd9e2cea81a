/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include "sandbox.h"

#include "base/auto.h"
#include "base/err.h"

#include <stdio.h>
#include <string.h>

struct call {
	struct peer *peer;
	const struct packet *packet;
	size_t create_len;       /* bytes behind the request */
	struct sandbox *sandbox; /* NEEDS_SANDBOX */
	struct warden_reply *reply;
	int *ret_fd;
};

static int answer_hello(struct call *call, struct err *err)
{
	if (call->packet->request.version != WARDEN_WIRE_VERSION)
		return err_make(err, ERR_PROTOCOL, "the warden speaks version %d, not %u",
				WARDEN_WIRE_VERSION, call->packet->request.version);
	call->peer->said_hello = true;
	return 0;
}

static int answer_create(struct call *call, struct err *err)
{
	const struct warden_create *create = &call->packet->create;
	int r = warden_create_check(create, call->create_len, err);

	if (r < 0)
		return r;
	if (create->n_binds > 0 && !call->peer->may_name_paths)
		return err_make(err, ERR_INVALID, "this client may not name paths of the host");
	return sandbox_create(call->packet->request.sandbox_id, create, &call->reply->facts,
			      call->ret_fd, err);
}

static int answer_limits(struct call *call, struct err *err)
{
	return sandbox_limits(call->sandbox, &call->packet->request.limits, err);
}

static int answer_stats(struct call *call, struct err *err)
{
	int r = sandbox_stats(call->sandbox, err);

	call->reply->usage = call->sandbox->usage;
	return r;
}

static int answer_freeze(struct call *call, struct err *err)
{
	return sandbox_freeze(call->sandbox, err);
}

static int answer_thaw(struct call *call, struct err *err)
{
	return sandbox_thaw(call->sandbox, err);
}

static int answer_kill(struct call *call, struct err *err)
{
	return sandbox_kill(call->sandbox, err);
}

static int answer_destroy(struct call *call, struct err *err)
{
	struct err ignored;
	int r = sandbox_kill(call->sandbox, err);

	(void)sandbox_stats(call->sandbox, &ignored); /* what it was in the end */
	call->reply->usage = call->sandbox->usage;
	sandbox_doom(call->sandbox);
	return r;
}

#define FIRST_ONLY (1u << 0)    /* allowed once, as the first message */
#define NEEDS_ID (1u << 1)      /* a well-formed sandbox id */
#define NEEDS_SANDBOX (1u << 2) /* of a sandbox that is there */
#define HAS_BODY (1u << 3)      /* more than the request itself */

/* Everything that an unprivileged process can make the warden do is in this table. */
static const struct {
	const char *name;
	unsigned flags;
	int (*answer)(struct call *call, struct err *err);
} asks[WARDEN_ASKS_] = {
	[WARDEN_HELLO] = { "hello", FIRST_ONLY, answer_hello },
	[WARDEN_CREATE] = { "create", NEEDS_ID | HAS_BODY, answer_create },
	[WARDEN_LIMITS] = { "limits", NEEDS_SANDBOX, answer_limits },
	[WARDEN_STATS] = { "stats", NEEDS_SANDBOX, answer_stats },
	[WARDEN_FREEZE] = { "freeze", NEEDS_SANDBOX, answer_freeze },
	[WARDEN_THAW] = { "thaw", NEEDS_SANDBOX, answer_thaw },
	[WARDEN_KILL] = { "kill", NEEDS_SANDBOX, answer_kill },
	[WARDEN_DESTROY] = { "destroy", NEEDS_SANDBOX, answer_destroy },
};

static int check(struct call *call, size_t len, struct err *err)
{
	const struct warden_request *request = &call->packet->request;

	if (len < sizeof(*request) || request->ask >= WARDEN_ASKS_)
		return err_make(err, ERR_PROTOCOL, "a request that the warden does not know");
	unsigned flags = asks[request->ask].flags;
	const char *name = asks[request->ask].name;
	bool is_greeting = flags & FIRST_ONLY;
	if (is_greeting == call->peer->said_hello)
		return err_make(err, ERR_CONFLICT, "'%s' out of order", name);
	if (!(flags & HAS_BODY) && len != sizeof(*request))
		return err_make(err, ERR_PROTOCOL, "'%s' has %zu bytes too many", name,
				len - sizeof(*request));
	if ((flags & (NEEDS_ID | NEEDS_SANDBOX)) && !id_is_valid(request->sandbox_id, ID_SANDBOX))
		return err_make(err, ERR_INVALID, "'%s' needs the id of a sandbox", name);
	if (flags & NEEDS_SANDBOX) {
		call->sandbox = sandbox_find(request->sandbox_id, err);
		if (!call->sandbox)
			return -err->errnum;
	}
	return 0;
}

void serve_request(struct peer *peer, const struct packet *packet, size_t len,
		   struct warden_reply *ret_reply, int *ret_fd)
{
	struct call call = { .peer = peer, .packet = packet, .reply = ret_reply, .ret_fd = ret_fd };

	*ret_reply = (struct warden_reply){ 0 };
	*ret_fd = -1;
	if (len >= sizeof(packet->request)) {
		ret_reply->serial = packet->request.serial;
		call.create_len = len - sizeof(packet->request);
	}
	int r = check(&call, len, &ret_reply->err);
	if (r == 0) {
		memcpy(ret_reply->sandbox_id, packet->request.sandbox_id, ID_SIZE);
		r = asks[packet->request.ask].answer(&call, &ret_reply->err);
	}
	ret_reply->failed = r < 0;
}
