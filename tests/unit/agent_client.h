/* SPDX-License-Identifier: Apache-2.0
 *
 * agent_client.h - a client of the agent for tests; a failure ends the test with a line.
 *
 * The agent runs as PID 1 of namespaces of its own: pid, mount, and user when the test is not
 * run by root.  Test and agent share an empty /tmp. */
#pragma once

#include "base/fd.h"
#include "check.h"
#include "wire/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLIENT_SAID_MAX (1u << 20)
#define CLIENT_PATIENCE_MS 10000

int agent_main(int argc, char **argv);

struct client {
	int fd;
	pid_t pid; /* of the agent's parent, which ends as the agent does */
	struct frame_reader reader;
	struct agent_message message;
	uint8_t buffer[FRAME_HEADER + FRAME_PAYLOAD_MAX];
	uint32_t window; /* the agent's credit on the one channel that is fed */
	/* client_finish() collects these */
	char out[CLIENT_SAID_MAX], err[CLIENT_SAID_MAX];
	size_t out_len, err_len;
	struct {
		uint32_t signaled, value;
		uint64_t max_rss_kib;
	} exit;
};

static inline int client_enter_namespaces(void)
{
	unsigned uid = getuid(), gid = getgid();
	char map[64];

	if (unshare(CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER)) < 0)
		return -1;
	if (uid != 0) {
		(void)fd_write_text_at(AT_FDCWD, "/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", uid);
		if (fd_write_text_at(AT_FDCWD, "/proc/self/uid_map", map) < 0)
			return -1;
		snprintf(map, sizeof(map), "0 %u 1", gid);
		if (fd_write_text_at(AT_FDCWD, "/proc/self/gid_map", map) < 0)
			return -1;
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	return mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777");
}

/* prepare() is called in the agent's process, after the stream is in its place and before the
 * agent starts; it may put more descriptors beside it. */
static inline void client_become_agent(int fd, void (*prepare)(void), const char *n_tasks)
{
	char *argv[] = { (char[]){ "agent" }, strdup(n_tasks ? n_tasks : "0"), NULL };

	if (fd != AGENT_FD_STREAM)
		dup2(fd, AGENT_FD_STREAM);
	close_range(AGENT_FD_STREAM + 1, ~0u, 0);
	if (unshare(CLONE_NEWNS) < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0)
		_exit(99);
	if (prepare)
		prepare();
	_exit(agent_main(2, argv));
}

/* A process between us and the agent: one that has unshared its pid namespace cannot start threads
 * any more, and the leak check at the end of a test wants one.  It ends as the agent ends. */
static inline void client_become_parent(int fd, void (*prepare)(void), const char *n_tasks)
{
	int status;

	if (unshare(CLONE_NEWPID) < 0)
		_exit(98);
	pid_t pid = fork();
	if (pid == 0)
		client_become_agent(fd, prepare, n_tasks);
	close(fd);
	waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 97);
}

/* -1 when this machine does not let us. */
static inline int client_start(struct client *client, void (*prepare)(void), const char *n_tasks)
{
	int fds[2];

	if (client_enter_namespaces() < 0)
		return -1;
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	client->pid = fork();
	if (client->pid == 0) {
		close(fds[0]);
		client_become_parent(fds[1], prepare, n_tasks);
	}
	close(fds[1]);
	client->fd = fds[0];
	client->window = AGENT_STDIN_WINDOW;
	frame_reader_init(&client->reader, client->buffer, sizeof(client->buffer));
	return 0;
}

/* The exit status of the agent. */
static inline int client_wait(struct client *client)
{
	int status = -1;

	CHECK_INT(waitpid(client->pid, &status, 0), client->pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The next message, which must come in time. */
static inline const struct agent_message *client_next(struct client *client)
{
	struct frame frame;
	struct err err;
	int r;

	while ((r = frame_next(&client->reader, &frame, &err)) == 0) {
		CHECK_INT(fd_wait_readable(client->fd, CLIENT_PATIENCE_MS), 1);
		CHECK(frame_fill(&client->reader, client->fd) > 0);
	}
	CHECK_INT(r, 1);
	if (agent_decode(&frame, &client->message, &err) < 0)
		END(EXIT_FAILURE, "%s", err.text);
	return &client->message;
}

static inline bool client_is_silent(struct client *client, int for_ms)
{
	return client->reader.start == client->reader.end &&
	       fd_wait_readable(client->fd, for_ms) == 0;
}

static inline void client_send(struct client *client, uint16_t type, uint32_t channel,
			       const void *data, size_t len)
{
	uint8_t header[FRAME_HEADER];

	frame_header(header, type, channel, (uint32_t)len);
	CHECK_INT(fd_write_all(client->fd, header, sizeof(header)), 0);
	CHECK_INT(fd_write_all(client->fd, data, len), 0);
}

static inline void client_exec(struct client *client, uint32_t channel,
			       const struct agent_exec *exec)
{
	static uint8_t payload[FRAME_PAYLOAD_MAX];
	struct pack pack = { .data = payload, .size = sizeof(payload) };
	struct err err;

	CHECK_INT(agent_pack_exec(&pack, exec, &err), 0);
	client_send(client, AGENT_EXEC, channel, pack.data, pack.len);
}

static inline void client_credit(struct client *client, uint32_t channel, uint32_t bytes)
{
	uint8_t data[4];
	struct pack pack = { .data = data, .size = sizeof(data) };

	pack_u32(&pack, bytes);
	client_send(client, AGENT_CREDIT, channel, data, pack.len);
}

static inline void client_signal(struct client *client, uint32_t channel, uint32_t number,
				 uint32_t scope)
{
	uint8_t data[8];
	struct pack pack = { .data = data, .size = sizeof(data) };

	pack_u32(&pack, number);
	pack_u32(&pack, scope);
	client_send(client, AGENT_SIGNAL, channel, data, pack.len);
}

static inline void client_keep(char *text, size_t *len, const struct agent_message *message)
{
	size_t room = CLIENT_SAID_MAX - 1 - *len;
	size_t n = message->data.len < room ? message->data.len : room; /* the rest is dropped */

	memcpy(text + *len, message->data.data, n);
	*len += n;
}

/* True when the message was the end of the channel. */
static inline bool client_hear(struct client *client, uint32_t channel)
{
	const struct agent_message *m = client_next(client);

	if (m->channel != channel)
		return false;
	switch (m->type) {
	case AGENT_STDOUT:
	case AGENT_DATA:
		client_keep(client->out, &client->out_len, m);
		return false;
	case AGENT_STDERR:
		client_keep(client->err, &client->err_len, m);
		return false;
	case AGENT_CREDIT:
		client->window += m->credit.bytes;
		return false;
	case AGENT_EXIT:
		client->exit.signaled = m->exit.signaled;
		client->exit.value = m->exit.value;
		client->exit.max_rss_kib = m->exit.max_rss_kib;
		return true;
	case AGENT_FAILED:
		END(EXIT_FAILURE, "%s", m->failed.text);
	default:
		return m->type == AGENT_DONE;
	}
}

/* Sends stdin or file data as the agent's credit allows. */
static inline void client_feed(struct client *client, uint16_t type, uint32_t channel,
			       const char *data, size_t len)
{
	while (len > 0) {
		size_t n = len < client->window ? len : client->window;
		if (n == 0) {
			CHECK(!client_hear(client, channel));
			continue;
		}
		client_send(client, type, channel, data, n);
		client->window -= (uint32_t)n;
		data += n;
		len -= n;
	}
}

/* Collects output until the end of the channel; returns the exit code or the signal. */
static inline int client_finish(struct client *client, uint32_t channel)
{
	while (!client_hear(client, channel))
		;
	client->out[client->out_len] = client->err[client->err_len] = '\0';
	client->out_len = client->err_len = 0;
	client->window = AGENT_STDIN_WINDOW;
	return (int)client->exit.value;
}

static inline void client_make_file(const char *path, const char *text, unsigned mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, text, strlen(text)), (long long)strlen(text));
	CHECK_INT(fchmod(fd, mode), 0);
	close(fd);
}
