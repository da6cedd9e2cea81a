/* SPDX-License-Identifier: Apache-2.0
 *
 * cay-warden - makes and ends sandboxes; the only program of cay that may have privileges.
 *
 * It is started with one end of a SEQPACKET socketpair and serves who holds the other end.  When
 * that closes, everything is given back. */
#include "host.h"
#include "sandbox.h"
#include "serve.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define CLIENT_FD 3

static void send_event(void *context, const struct sandbox *sandbox, enum warden_event event)
{
	struct peer *peer = context;
	struct warden_reply reply = { .event = event, .usage = sandbox->usage };

	memcpy(reply.sandbox_id, sandbox->id, ID_SIZE);
	/* A client that does not listen must not stop us: an event that does not fit is dropped. */
	(void)send(peer->fd, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Returns false when the client is gone. */
static bool on_request(struct peer *peer)
{
	static struct packet packet;
	struct warden_reply reply;
	int fd = -1;

	memset(&packet, 0, sizeof(packet.request) + offsetof(struct warden_create, strings));
	ssize_t n = fd_recv(peer->fd, &packet, sizeof(packet), NULL, 0, NULL);
	if (n == -EMSGSIZE)
		n = 1; /* too long, or with descriptors: answered as unknown */
	if (n <= 0)
		return false;
	bool is_first = !peer->said_hello;
	serve_request(peer, &packet, (size_t)n, &reply, &fd);
	int r = fd_send(peer->fd, &reply, sizeof(reply), &fd, fd >= 0);
	drop_fd(&fd);
	/* While the client does something else. */
	sandbox_sweep();
	if (is_first && peer->said_hello) {
		struct err ignored; /* the first create tries again, and says why */
		(void)host_ready(&ignored);
	}
	return r == 0;
}

static void serve(struct peer *peer)
{
	int64_t next_look = 0;

	for (;;) {
		struct pollfd polls[] = {
			{ .fd = peer->fd, .events = POLLIN },
			{ .fd = host.launcher.pid ? host.launcher.sock : -1, .events = POLLIN },
		};
		if (poll(polls, ARRAY_LEN(polls), sandbox_any() ? WATCH_MS : -1) < 0 &&
		    errno != EINTR)
			return;
		if (polls[1].revents) {
			struct err ignored;
			(void)launcher_listen(&host.launcher, &ignored);
			next_look = 0;
		}
		if ((polls[0].revents & (POLLIN | POLLHUP | POLLERR)) && !on_request(peer))
			return;
		if (!sandbox_any()) {
			next_look = clock_mono_ms() + WATCH_MS;
		} else if (clock_mono_ms() >= next_look) {
			sandbox_watch(send_event, peer);
			next_look = clock_mono_ms() + WATCH_MS;
		}
	}
}

int main(int argc, char **argv)
{
	struct peer peer = { .fd = CLIENT_FD, .may_name_paths = true };
	struct stat st;

	if (argc < 2 || fstat(CLIENT_FD, &st) < 0 || !S_ISSOCK(st.st_mode)) {
		fprintf(stderr, "cay-warden: this program is started by cay\n");
		return 2;
	}
	/* Signals of the user's terminal are for the program in the sandbox, not for us. */
	(void)setsid();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)prctl(PR_SET_NAME, "cay-warden", 0, 0, 0);
	(void)sys_close_range(CLIENT_FD + 1, ~0u, 0);
	(void)fd_set_cloexec(CLIENT_FD, true);
	umask(0077);
	if (chdir("/") < 0)
		return 1;
	host_init(argv[1], argc > 2 ? (uint32_t)atoi(argv[2]) : 1);
	serve(&peer);
	sandbox_destroy_all();
	host_finish();
	return 0;
}
