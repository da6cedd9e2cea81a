/* SPDX-License-Identifier: Apache-2.0
 *
 * sandbox.h - all that the agent knows: its descriptors and its channels, in fixed tables.
 *
 * There is one of it, in main.c; nothing is ever allocated.  Pages of the buffers that are not
 * used cost nothing. */
#pragma once

#include "list.h"
#include "notify.h"
#include "out.h"
#include "request.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum channel_kind {
	CHANNEL_FREE,
	CHANNEL_PROCESS,
	CHANNEL_READ,
	CHANNEL_WRITE,
	CHANNEL_LIST,
};

/* What poll() said of a channel's descriptors. */
#define READY_REPORT (1u << 0)
#define READY_STDOUT (1u << 1)
#define READY_STDERR (1u << 2)
#define READY_STDIN (1u << 3)

/* One pipe (or terminal) that a process writes to. */
struct source {
	int fd;         /* -1: at its end */
	uint16_t frame; /* AGENT_STDOUT or AGENT_STDERR */
	unsigned ready; /* its READY_ bit */
	size_t left;    /* once process.last: how much of it is still sent */
};

struct process {
	pid_t pid;
	int report; /* says how exec went; -1 once that is known */
	int stdin_fd;
	struct source sources[2];
	bool is_pty;    /* stdin_fd and sources[0].fd are two descriptors of the terminal */
	bool stdin_eof; /* the client has said all */
	bool reaped;    /* status and usage hold */
	bool last;      /* nobody waits for more output than was there at the deadline */
	bool turn;      /* which source comes first, so that none starves the other */
	int64_t drain_until_ms;
	int status;
	uint64_t user_us, system_us, max_rss_kib;
};

struct transfer {
	int fd;
	int dir_fd; /* of the file being written */
	uint64_t offset, left, moved;
	uint32_t mode, flags;
	char name[256];
	char temporary[32]; /* "": not there (any more) */
};

struct channel {
	enum channel_kind kind;
	uint32_t id;
	unsigned ready;  /* READY_ bits of this round */
	uint32_t credit; /* bytes we may send */
	uint32_t window; /* bytes the client may send */
	uint32_t owed;   /* consumed, and not yet given back as credit */
	union {
		struct process process;
		struct transfer transfer;
		struct listing *listing; /* one of sandbox.listings */
	};
	size_t inbox_start, inbox_len;
	uint8_t inbox[AGENT_STDIN_WINDOW]; /* stdin that the process has not taken yet */
};

/* SIGKILL to SCOPE_ALL, until nobody is left. */
struct killing {
	bool active;
	int64_t until_ms;
};

struct sandbox {
	int stream, handover, signals; /* -1: not there */
	int tasks[AGENT_TASKS_MAX];
	unsigned n_tasks;
	uint32_t open_files; /* of a program; 0: as the agent's own */
	int64_t now_ms;      /* of this round */
	bool again;          /* there is work left that no descriptor will announce */
	unsigned first;      /* channel that is served first in this round */
	struct killing killing;
	struct notify notify;
	struct frame_reader reader;
	struct out out;
	struct request_space space;
	struct listing listings[LISTINGS_MAX];
	struct channel channels[AGENT_CHANNELS]; /* channel n is at n - 1 */
	uint8_t input[FRAME_HEADER + FRAME_PAYLOAD_MAX];
};

/* The channel is free again; its descriptors must be closed. */
void channel_free(struct channel *channel);

/* Gives consumed bytes back to the client, not each single one. */
void channel_return_credit(struct channel *channel, struct out *out);
