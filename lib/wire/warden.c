/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/warden.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

static const char *const tiers[TIERS_] = {
	[TIER_JAIL] = "jail",       [TIER_CONTAINER] = "container", [TIER_GVISOR] = "gvisor",
	[TIER_MICROVM] = "microvm", [TIER_WASM] = "wasm",
};

static const char *const layers[LAYERS_] = {
	[LAYER_USER_NS] = "user_ns",
	[LAYER_PID_NS] = "pid_ns",
	[LAYER_MOUNT_NS] = "mount_ns",
	[LAYER_NET_NS] = "net_ns",
	[LAYER_IPC_NS] = "ipc_ns",
	[LAYER_UTS_NS] = "uts_ns",
	[LAYER_CGROUP_NS] = "cgroup_ns",
	[LAYER_ROOT] = "root",
	[LAYER_UIDS] = "uids",
	[LAYER_CAPS] = "caps",
	[LAYER_NO_NEW_PRIVS] = "no_new_privs",
	[LAYER_LANDLOCK] = "landlock",
	[LAYER_SECCOMP] = "seccomp",
	[LAYER_RLIMITS] = "rlimits",
	[LAYER_DESCRIPTORS] = "descriptors",
	[LAYER_CGROUP] = "cgroup",
};

static int find(const char *const *names, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

const char *tier_name(uint32_t tier)
{
	return tier < TIERS_ ? tiers[tier] : "unknown";
}

int tier_find(const char *name)
{
	return find(tiers, TIERS_, name);
}

const char *layer_name(unsigned layer)
{
	return layer < LAYERS_ ? layers[layer] : "unknown";
}

int layer_find(const char *name)
{
	return find(layers, LAYERS_, name);
}

static int receive(struct warden *warden, struct warden_reply *ret_reply, int *ret_fd,
		   struct err *err)
{
	size_t n_fds = 0;
	int fd = -1;
	ssize_t n = fd_recv(warden->fd, ret_reply, sizeof(*ret_reply), &fd, 1, &n_fds);

	if (n == 0 || n == -ECONNRESET) /* it left, perhaps without reading our last word */
		n = -EPIPE;
	if (n < 0)
		return err_errno(err, (int)-n, "hear from the warden");
	*ret_fd = n_fds ? fd : -1;
	if ((size_t)n != sizeof(*ret_reply)) {
		drop_fd(ret_fd);
		return err_make(err, ERR_PROTOCOL, "the warden sent %zd bytes", n);
	}
	ret_reply->sandbox_id[ID_SIZE - 1] = '\0';
	return 0;
}

/* The answer to the last request.  Events that come before it are dropped: who asks for usage or
 * an end learns the same from the answer. */
static int await(struct warden *warden, struct warden_reply *ret_reply, int *ret_fd,
		 struct err *err)
{
	for (;;) {
		int fd = -1;
		int r = receive(warden, ret_reply, &fd, err);
		if (r < 0)
			return r;
		if (ret_reply->serial != warden->serial) {
			drop_fd(&fd);
			continue;
		}
		if (ret_reply->failed) {
			drop_fd(&fd);
			err_sanitize(&ret_reply->err);
			*err = ret_reply->err;
			return -err->errnum;
		}
		if (ret_fd)
			*ret_fd = fd;
		else
			drop_fd(&fd);
		return 0;
	}
}

static int send_request(struct warden *warden, enum warden_ask ask, const char *id,
			const struct limits *limits, struct err *err)
{
	struct warden_request request = { .ask = ask,
					  .serial = ++warden->serial,
					  .version = WARDEN_WIRE_VERSION };

	if (id)
		snprintf(request.sandbox_id, sizeof(request.sandbox_id), "%s", id);
	if (limits)
		request.limits = *limits;
	int r = fd_send(warden->fd, &request, sizeof(request), NULL, 0);
	return r < 0 ? err_errno(err, -r, "ask the warden") : 0;
}

static int ask(struct warden *warden, enum warden_ask what, const char *id,
	       const struct limits *limits, struct usage *ret_usage, struct err *err)
{
	struct warden_reply reply;
	int r = send_request(warden, what, id, limits, err);

	if (r == 0)
		r = await(warden, &reply, NULL, err);
	if (r == 0 && ret_usage)
		*ret_usage = reply.usage;
	return r;
}

/* Its end of the socket is descriptor 3; posix_spawn says what exec said. */
static int spawn(int sock, const char *path, const char *state_dir, uint32_t most, pid_t *ret_pid)
{
	char count[16];
	char *argv[] = { "cay-warden", (char *)state_dir, count, NULL };
	posix_spawn_file_actions_t actions;

	snprintf(count, sizeof(count), "%u", most);
	int r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_adddup2(&actions, sock, 3);
	if (r == 0)
		r = posix_spawn(ret_pid, path, &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int warden_spawn(struct warden *warden, const char *path, const char *state_dir, uint32_t most,
		 struct err *err)
{
	int pair[2];

	*warden = (struct warden){ .fd = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, errno, "make a socket for the warden");
	int r = spawn(pair[1], path, state_dir, most, &warden->pid);
	close(pair[1]);
	warden->fd = pair[0];
	if (r < 0) {
		drop_fd(&warden->fd);
		return err_errno(err, -r, "start '%s'", path);
	}
	r = ask(warden, WARDEN_HELLO, NULL, NULL, NULL, err);
	if (r < 0) {
		warden_finish(warden);
		return err_while(err, "start '%s'", path);
	}
	return 0;
}

void warden_finish(struct warden *warden)
{
	drop_fd(&warden->fd);
	if (warden->pid > 0)
		while (waitpid(warden->pid, NULL, 0) < 0 && errno == EINTR)
			;
	warden->pid = 0;
}

int warden_create_string(struct warden_create *create, const char *text, struct err *err)
{
	size_t len = strlen(text) + 1;

	if (create->strings_len == 0)
		create->strings[create->strings_len++] = '\0';
	if (len == 1)
		return 0;
	if (len > WARDEN_STRINGS_MAX - create->strings_len)
		return err_make(err, ERR_LIMIT, "the paths of one sandbox take more than %d bytes",
				WARDEN_STRINGS_MAX);
	int at = (int)create->strings_len;
	memcpy(create->strings + at, text, len);
	create->strings_len += (uint32_t)len;
	return at;
}

int warden_create_bind(struct warden_create *create, enum bind_kind kind, const char *source,
		       const char *target, const char *over, struct err *err)
{
	if (create->n_binds == WARDEN_BINDS_MAX)
		return err_make(err, ERR_LIMIT,
				"more than %d files and directories for one sandbox",
				WARDEN_BINDS_MAX);
	int s = warden_create_string(create, source, err);
	int t = s < 0 ? s : warden_create_string(create, target, err);
	int o = t < 0 ? t : warden_create_string(create, over ? over : "", err);
	if (o < 0)
		return o;
	create->binds[create->n_binds++] = (struct warden_bind){
		.kind = kind, .source = (uint32_t)s, .target = (uint32_t)t, .over = (uint32_t)o
	};
	return 0;
}

int warden_create_send(struct warden *warden, const char *id, const struct warden_create *create,
		       struct err *err)
{
	struct warden_request request = { .ask = WARDEN_CREATE, .serial = ++warden->serial };
	size_t len = offsetof(struct warden_create, strings) + create->strings_len;
	auto_free char *packet = malloc(sizeof(request) + len);

	if (!packet)
		return err_errno(err, ENOMEM, "ask for a sandbox");
	snprintf(request.sandbox_id, sizeof(request.sandbox_id), "%s", id);
	memcpy(packet, &request, sizeof(request));
	memcpy(packet + sizeof(request), create, len);
	int r = fd_send(warden->fd, packet, sizeof(request) + len, NULL, 0);
	return r < 0 ? err_errno(err, -r, "ask the warden for a sandbox") : 0;
}

int warden_create_recv(struct warden *warden, struct sandbox_facts *ret_facts, int *ret_agent_fd,
		       struct err *err)
{
	struct warden_reply reply;
	int fd = -1;
	int r = await(warden, &reply, &fd, err);

	if (r < 0)
		return r;
	if (fd < 0)
		return err_make(err, ERR_PROTOCOL, "the warden sent no stream");
	reply.facts.kernel[sizeof(reply.facts.kernel) - 1] = '\0';
	reply.facts.seccomp_digest[sizeof(reply.facts.seccomp_digest) - 1] = '\0';
	reply.facts.agent_digest[sizeof(reply.facts.agent_digest) - 1] = '\0';
	*ret_facts = reply.facts;
	*ret_agent_fd = fd;
	return 0;
}

int warden_stats(struct warden *warden, const char *id, struct usage *ret_usage, struct err *err)
{
	return ask(warden, WARDEN_STATS, id, NULL, ret_usage, err);
}

int warden_limits(struct warden *warden, const char *id, const struct limits *limits,
		  struct err *err)
{
	return ask(warden, WARDEN_LIMITS, id, limits, NULL, err);
}

int warden_freeze(struct warden *warden, const char *id, struct err *err)
{
	return ask(warden, WARDEN_FREEZE, id, NULL, NULL, err);
}

int warden_thaw(struct warden *warden, const char *id, struct err *err)
{
	return ask(warden, WARDEN_THAW, id, NULL, NULL, err);
}

int warden_kill(struct warden *warden, const char *id, struct err *err)
{
	return ask(warden, WARDEN_KILL, id, NULL, NULL, err);
}

int warden_destroy(struct warden *warden, const char *id, struct usage *ret_usage, struct err *err)
{
	return ask(warden, WARDEN_DESTROY, id, NULL, ret_usage, err);
}

int warden_event(struct warden *warden, struct warden_reply *ret_event, struct err *err)
{
	int fd = -1;

	*ret_event = (struct warden_reply){ .event = WARDEN_EVENT_NONE };
	if (fd_wait_readable(warden->fd, 0) <= 0)
		return 0;
	int r = receive(warden, ret_event, &fd, err);
	drop_fd(&fd);
	if (r == 0 && (ret_event->serial != 0 || ret_event->event >= WARDEN_EVENTS_))
		ret_event->event = WARDEN_EVENT_NONE;
	return r;
}

static bool is_path(const char *text)
{
	size_t len = strlen(text);

	return text[0] == '/' && len < 1024 && !strstr(text, "/../") &&
	       (len < 3 || strcmp(text + len - 3, "/..") != 0);
}

static int check_bind(const struct warden_create *create, const struct warden_bind *bind,
		      struct err *err)
{
	const char *source = create->strings + bind->source,
		   *target = create->strings + bind->target;
	const char *over = create->strings + bind->over;

	if (bind->kind >= BIND_KINDS_)
		return err_make(err, ERR_PROTOCOL, "a kind of mount that the warden does not know");
	if (!is_path(source) || (over[0] && !is_path(over)))
		return err_make(err, ERR_INVALID, "'%.200s' is not an absolute path",
				is_path(source) ? over : source);
	if (bind->kind == BIND_TREE && (!is_path(target) || target[1] == '\0'))
		return err_make(err, ERR_INVALID, "'%.200s' is no place for a tree", target);
	if (bind->kind == BIND_INPUT &&
	    (!target[0] || strlen(target) > 255 || strchr(target, '/') || target[0] == '.'))
		return err_make(err, ERR_INVALID, "'%.200s' is no name for an input", target);
	return 0;
}

int warden_create_check(const struct warden_create *create, size_t len, struct err *err)
{
	const size_t head = offsetof(struct warden_create, strings);

	if (len < head || create->strings_len > WARDEN_STRINGS_MAX ||
	    len != head + create->strings_len)
		return err_make(err, ERR_PROTOCOL, "a create request of the wrong length");
	if (create->tier >= TIERS_ || create->n_binds > WARDEN_BINDS_MAX ||
	    (create->require >> LAYERS_) != 0 || create->own_workspace > 1)
		return err_make(err, ERR_PROTOCOL, "a create request with a wrong number");
	if (create->n_binds > 0 && (create->strings_len == 0 || create->strings[0] != '\0' ||
				    create->strings[create->strings_len - 1] != '\0'))
		return err_make(err, ERR_PROTOCOL, "the strings of a create request do not end");
	for (uint32_t i = 0; i < create->n_binds; i++) {
		const struct warden_bind *bind = &create->binds[i];
		if (bind->source >= create->strings_len || bind->target >= create->strings_len ||
		    bind->over >= create->strings_len)
			return err_make(err, ERR_PROTOCOL, "a path outside the create request");
		int r = check_bind(create, bind, err);
		if (r < 0)
			return r;
	}
	return 0;
}
