/* SPDX-License-Identifier: Apache-2.0
 *
 * wire/warden.h - what a client (cli, api) may ask of the warden.
 *
 * One packet each way over a SOCK_SEQPACKET socketpair; descriptors travel as SCM_RIGHTS.  Same
 * machine, same build: native byte order, and the hello checks the version.  The warden also
 * sends events on its own (serial 0).  Prose: docs/protocol/warden.md. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "wire/limits.h"

#include <stdint.h>

#define WARDEN_WIRE_VERSION 1
#define WARDEN_BINDS_MAX 48
#define WARDEN_STRINGS_MAX 49152

enum warden_ask {
	WARDEN_HELLO,
	WARDEN_CREATE, /* a sandbox, proven; -> facts, and the agent's stream as a descriptor */
	WARDEN_LIMITS, /* change limits of a live sandbox */
	WARDEN_STATS,  /* -> usage so far */
	WARDEN_FREEZE, /* the code, not the agent */
	WARDEN_THAW,
	WARDEN_KILL,    /* every process of the sandbox, the agent too */
	WARDEN_DESTROY, /* kill if need be, give everything back; -> last usage */
	WARDEN_ASKS_
};

enum tier { TIER_JAIL, TIER_CONTAINER, TIER_GVISOR, TIER_MICROVM, TIER_WASM, TIERS_ };

const char *tier_name(uint32_t tier);
/* The tier of that name, or -1. */
int tier_find(const char *name);

/* What a sandbox is made of; each is proven before user code runs, or says that it is absent. */
enum layer {
	LAYER_USER_NS,
	LAYER_PID_NS,
	LAYER_MOUNT_NS,
	LAYER_NET_NS,
	LAYER_IPC_NS,
	LAYER_UTS_NS,
	LAYER_CGROUP_NS,
	LAYER_ROOT, /* pivoted; exactly the mounts we made, with their flags */
	LAYER_UIDS, /* own host uids, no groups */
	LAYER_CAPS, /* all sets empty, bounding too */
	LAYER_NO_NEW_PRIVS,
	LAYER_LANDLOCK,
	LAYER_SECCOMP,
	LAYER_RLIMITS,
	LAYER_DESCRIPTORS, /* only the agent's own */
	LAYER_CGROUP,      /* agent and code in their own, with limits written and read back */
	LAYERS_
};

const char *layer_name(unsigned layer);
/* The layer of that name, or -1. */
int layer_find(const char *name);

enum bind_kind {
	/* The root file system, instead of the host's /usr.  source: a directory. */
	BIND_IMAGE,
	/* A read-only tree of its own at target, seen through the sandbox's own overlay.  `over`,
	 * when not empty, is a layer laid over it. */
	BIND_TREE,
	/* One read-only file at /workspace/input/<target>. */
	BIND_INPUT,
	/* A directory of the user's as /workspace. */
	BIND_WORKSPACE_RO,
	BIND_WORKSPACE_RW,
	BIND_KINDS_
};

/* Offsets into warden_create.strings; 0 is the empty string. */
struct warden_bind {
	uint32_t kind; /* enum bind_kind */
	uint32_t source;
	uint32_t target;
	uint32_t over;
};

struct warden_create {
	struct limits limits;
	uint32_t tier;          /* enum tier: exactly this one or a refusal */
	uint32_t require;       /* bits 1 << enum layer: refuse where one of them is absent */
	uint32_t own_workspace; /* 1: a scratch workspace with a quota; 0: a bind gives it, or none
				 */
	uint32_t n_binds;
	struct warden_bind binds[WARDEN_BINDS_MAX];
	uint32_t strings_len;
	char strings[WARDEN_STRINGS_MAX]; /* NUL-ended strings; strings[0] is NUL */
};

struct warden_request {
	uint32_t ask; /* enum warden_ask */
	uint32_t serial;
	uint32_t version; /* hello */
	char sandbox_id[ID_SIZE];
	struct limits limits; /* limits */
	/* A create request is followed by struct warden_create in the same packet; its strings
	 * are cut after strings_len. */
};

/* What the warden saw with its own eyes after the start. */
struct sandbox_facts {
	uint32_t tier;          /* what it really is */
	uint32_t layers_held;   /* bits 1 << enum layer */
	uint32_t layers_absent; /* this host or user cannot have them; the rest is held */
	uint32_t landlock_abi;
	uint32_t uid_base; /* host uid of the sandbox's uid 0, or of its only uid */
	uint32_t uid_count;
	uint32_t cgroup_version; /* 0, 1 or 2 */
	struct enforcement by;
	uint64_t setup_us;
	char kernel[64];
	char seccomp_digest[65]; /* sha256 of the filter, hex */
	char agent_digest[65];   /* sha256 of the agent's bytes, hex */
};

enum warden_event {
	WARDEN_EVENT_NONE,
	WARDEN_EVENT_ENDED,    /* the agent, and so the sandbox, is gone */
	WARDEN_EVENT_CPU_TIME, /* the cpu_time limit was reached; the code was stopped */
	WARDEN_EVENT_MEMORY,   /* the watcher stopped the code for memory */
	WARDEN_EVENT_DISK,     /* the workspace is full */
	WARDEN_EVENTS_
};

struct warden_reply {
	uint32_t serial; /* 0: an event */
	uint32_t failed; /* 1: err says why */
	uint32_t event;  /* enum warden_event */
	char sandbox_id[ID_SIZE];
	struct err err;
	struct sandbox_facts facts; /* create */
	struct usage usage;         /* stats, destroy, events */
};

/* The client's side.  Used by one thread; replies and events are told apart by serial. */
struct warden {
	int fd;  /* -1: not there */
	int pid; /* of cay-warden, when we started it */
	uint32_t serial;
};

/* Starts `path` (cay-warden) as a child that serves us alone: it may be given host paths, and it
 * ends everything when our end of the socket closes.  state_dir is where its runs are kept, most
 * how many sandboxes it may have at the same time. */
int warden_spawn(struct warden *warden, const char *path, const char *state_dir, uint32_t most,
		 struct err *err);

/* Closes the socket, waits for the child to be gone. */
void warden_finish(struct warden *warden);

/* Appends a string to create->strings and returns its offset; ERR_LIMIT when it does not fit. */
int warden_create_string(struct warden_create *create, const char *text, struct err *err);
int warden_create_bind(struct warden_create *create, enum bind_kind kind, const char *source,
		       const char *target, const char *over, struct err *err);

/* The request and its answer may be split, so that the caller can work while the warden does. */
int warden_create_send(struct warden *warden, const char *id, const struct warden_create *create,
		       struct err *err);
int warden_create_recv(struct warden *warden, struct sandbox_facts *ret_facts, int *ret_agent_fd,
		       struct err *err);

int warden_stats(struct warden *warden, const char *id, struct usage *ret_usage, struct err *err);
int warden_limits(struct warden *warden, const char *id, const struct limits *limits,
		  struct err *err);
int warden_freeze(struct warden *warden, const char *id, struct err *err);
int warden_thaw(struct warden *warden, const char *id, struct err *err);
int warden_kill(struct warden *warden, const char *id, struct err *err);
int warden_destroy(struct warden *warden, const char *id, struct usage *ret_usage, struct err *err);

/* Takes one event that is waiting on fd; WARDEN_EVENT_NONE when there is none.  -EPIPE when the
 * warden is gone. */
int warden_event(struct warden *warden, struct warden_reply *ret_event, struct err *err);

/* Bounds of a create request that came over the wire: counts, offsets, terminators, kinds. */
int warden_create_check(const struct warden_create *create, size_t len, struct err *err);
