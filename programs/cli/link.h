/* SPDX-License-Identifier: Apache-2.0
 *
 * link.h - our end of the agent's stream: frames out through a queue, checked messages in.
 *
 * The descriptor is non-blocking.  What comes in was decoded and bounded by wire/agent.h and is
 * still the word of a hostile agent. */
#pragma once

#include "wire/agent.h"
#include "wire/frame.h"

#include <stdbool.h>

/* How much of output, files and lists the agent may send ahead of us. */
#define LINK_WINDOW 262144

struct link {
	int fd; /* owned; -1: none */
	struct frame_reader reader;
	uint8_t *in;  /* owned */
	uint8_t *out; /* owned; bytes out_start ... out_end wait to be sent */
	size_t out_start, out_end, out_size;
	int abort_fd; /* borrowed; readable: the person wants us to stop.  -1: nobody can */
};

/* Takes fd over. */
int link_init(struct link *link, int fd, int abort_fd, struct err *err);
void link_finish(struct link *link);

/* Puts a frame into the queue; it goes out with the next one that is sent. */
int link_queue(struct link *link, uint16_t type, uint32_t channel, const void *payload, size_t len,
	       struct err *err);

/* Puts a frame into the queue and sends what the stream takes now. */
int link_send(struct link *link, uint16_t type, uint32_t channel, const void *payload, size_t len,
	      struct err *err);
int link_send_pack(struct link *link, uint16_t type, uint32_t channel, const struct pack *pack,
		   struct err *err);
int link_signal(struct link *link, uint32_t channel, int signal, enum agent_scope scope,
		struct err *err);
int link_credit(struct link *link, uint32_t channel, uint32_t bytes, struct err *err);

bool link_has_queue(const struct link *link);
int link_flush(struct link *link, struct err *err);

/* Reads what is there.  1, 0 when there was nothing, -EPIPE when the agent is gone. */
int link_fill(struct link *link, struct err *err);
/* The next whole message that was read: 1, or 0 when there is none.  Good until link_fill(). */
int link_next(struct link *link, struct agent_message *ret_message, struct err *err);

/* Waits for a message.  ERR_TIMEOUT when none comes within timeout_ms, ERR_CONFLICT when
 * abort_fd became readable. */
int link_wait(struct link *link, int timeout_ms, struct agent_message *ret_message,
	      struct err *err);

/* Sends a whole file: AGENT_WRITE, its bytes as credit allows, AGENT_DONE.  The last of it stays in
 * the queue and goes out with the next frame.  The agent's answer on the channel (AGENT_DONE or
 * AGENT_FAILED) is left to the caller. */
int link_put_file(struct link *link, uint32_t channel, const char *path, uint32_t mode,
		  const void *data, size_t len, struct err *err);
