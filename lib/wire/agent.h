/* SPDX-License-Identifier: Apache-2.0
 *
 * wire/agent.h - what a client says to the agent inside a sandbox, and what it hears.
 *
 * One byte stream of frames (wire/frame.h); that is all that a sandbox has in common with the
 * outside, whatever its tier.  Channel 0 is the agent itself; each process, and each file
 * transfer, gets a channel that the client picks (1 ... AGENT_CHANNELS).  What the agent says is
 * hostile input.  Prose: docs/protocol/agent.md.
 *
 * Flow control: bytes and entries that "spend credit" are sent only while the receiver's credit on
 * that channel lasts; payload bytes count.  The client's credit starts at 0 and grows by
 * AGENT_CREDIT; the agent's to the client starts at AGENT_STDIN_WINDOW and grows the same way.
 *
 * The end of a channel is AGENT_EXIT (process), AGENT_DONE (transfer) or AGENT_FAILED; then the
 * client may use its number again.  AGENT_FAILED on channel 0 ends nothing: it says that a frame
 * was refused.  Frames for a channel that has just ended are dropped without a word.
 *
 * In the jail the agent has a second, SOCK_SEQPACKET socket (descriptor AGENT_FD_HANDOVER) over
 * which the warden hands it kernels that a zygote forked into the sandbox: one packet
 * `struct agent_handover` with the three pipes and the two control descriptors of the kernel as
 * SCM_RIGHTS. */
#pragma once

#include "base/err.h"
#include "wire/frame.h"

#include <stdint.h>

#define AGENT_WIRE_VERSION 1
#define AGENT_CHANNELS 64

/* Descriptors that the agent finds at its start, and nothing else.  The agent lives under the same
 * seccomp filter as the code, so the filter lets the two ioctls through that serve the listener,
 * SECCOMP_IOCTL_NOTIF_RECV and SECCOMP_IOCTL_NOTIF_SEND; on any other descriptor they do nothing.
 * argv[1] is the number of cgroup files, argv[2] how many files a program may have open (0 or
 * absent: as many as the agent), both in decimal. */
#define AGENT_FD_STREAM 3
#define AGENT_FD_HANDOVER 4
#define AGENT_FD_NOTIFY 5 /* the seccomp listener */
#define AGENT_FD_TASKS 6  /* this and up: cgroup files into which a child writes "0" */
#define AGENT_TASKS_MAX 8

/* A path that the mount namespace shows and Landlock forbids; opening it must fail with EACCES. */
#define AGENT_CANARY "/.cay/canary"

enum agent_frame {
	/* agent -> client */
	AGENT_HELLO = 1, /* u32 version, u32 canary errno (0: it opened!), u32 pid */
	AGENT_STARTED,   /* on the process's channel: u32 pid */
	AGENT_STDOUT,    /* bytes; spends credit */
	AGENT_STDERR,    /* bytes; spends credit */
	AGENT_EXIT,      /* u32 kind (0 exited, 1 signaled), u32 value, u64 user us, u64 system us,
			  * u64 max rss KiB; after the last output */
	AGENT_FAILED,    /* u32 kind, u32 errno, text: the request on this channel failed */
	AGENT_DENIED,    /* channel 0: u32 count, then u32 syscall number (AGENT_DENIED_OTHER: some
			  * other), u32 times: since the last such.  Sent before any AGENT_EXIT */
	AGENT_FILE,      /* answer to AGENT_READ: u64 size, u32 mode; then AGENT_DATA frames */
	AGENT_DATA,      /* bytes of a file; spends credit */
	AGENT_DONE,      /* the transfer on this channel is over: u64 bytes moved.  For AGENT_LIST:
			  * entries there were; more than were sent means some were left out.
			  * On channel 0: every process is gone after SIGKILL to SCOPE_ALL */
	AGENT_ENTRY,     /* answer to AGENT_LIST: u32 type ('f','d','l','o'), u64 size, u32 mode,
			  * u64 mtime ns, text path relative to the listed one; spends credit, and
			  * is sent only while AGENT_ENTRY_MAX bytes of it are left */
	AGENT_PONG,

	/* client -> agent */
	AGENT_EXEC = 64, /* u32 flags, u32 argc, texts, u32 envc, texts, text cwd */
	AGENT_STDIN,     /* bytes for the process; at most the credit the agent gave */
	AGENT_STDIN_EOF,
	AGENT_SIGNAL, /* u32 signal, u32 scope (enum agent_scope) */
	AGENT_CREDIT, /* u32 bytes: may be sent on this channel from now on (both directions) */
	AGENT_READ,   /* text path, u64 offset, u64 length (0: all) */
	AGENT_WRITE,  /* text path, u32 mode, u32 flags; AGENT_DATA, then AGENT_DONE */
	AGENT_LIST,   /* text path, u32 depth (0: the path itself), u32 max entries */
	AGENT_PING,
	AGENT_RESIZE, /* the terminal of this channel: u32 rows, u32 columns */
	AGENT_CANCEL, /* give the transfer on this channel up; AGENT_FAILED (ECANCELED) answers */
};

/* AGENT_FAILED as the answer to AGENT_EXEC, by kind:
 *     ERR_NOT_FOUND  there is no such program                      a shell would say 127
 *     ERR_SYSTEM     execve() refused it; errno says why            126
 *     others         it was never tried: ERR_LIMIT, ERR_INVALID (working directory), ERR_SETUP */

/* AGENT_EXEC flags */
#define EXEC_STDIN (1u << 0)  /* the client sends stdin; otherwise it is /dev/null */
#define EXEC_MERGED (1u << 1) /* stderr goes where stdout goes */
#define EXEC_PTY (1u << 2)    /* with a terminal; u32 rows, u32 columns follow cwd */

/* AGENT_WRITE flags */
#define WRITE_EXCLUSIVE (1u << 0) /* the file must not exist */
#define WRITE_PARENTS (1u << 1)   /* make missing directories */

enum agent_scope {
	SCOPE_PROCESS, /* the process of the channel */
	SCOPE_GROUP,   /* its process group */
	SCOPE_ALL,     /* every process of the sandbox but the agent */
};

#define AGENT_STDIN_WINDOW 65536  /* the agent's first credit to the client, per channel */
#define AGENT_ARGV_MAX (1u << 20) /* bytes of argv and env together */
#define AGENT_ARGS_MAX 16384
#define AGENT_PATH_MAX 4095
#define AGENT_ENTRY_FIELDS 28 /* payload of an AGENT_ENTRY before its path */
#define AGENT_ENTRY_MAX (AGENT_ENTRY_FIELDS + AGENT_PATH_MAX)
#define AGENT_LIST_DEPTH_MAX 32
#define AGENT_LIST_ENTRIES_MAX 1000000
#define AGENT_DENIED_MAX 513 /* pairs in one AGENT_DENIED */
#define AGENT_DENIED_OTHER UINT32_MAX

/* A kernel that comes from a zygote: AGENT_HANDOVER_FDS descriptors in this order: stdin,
 * stdout, stderr, control in, control out. */
#define AGENT_HANDOVER_FDS 5
struct agent_handover {
	uint32_t version;
	uint32_t channel;
	uint32_t pid;     /* in the sandbox */
	char runtime[32]; /* python@3.12 */
};

/* The client's decoded view of one frame; every field is checked and bounded.  -EPROTO when the
 * agent broke the rules. */
struct agent_message {
	uint16_t type;
	uint32_t channel;
	union {
		struct {
			uint32_t version, canary_errno, pid;
		} hello;
		struct {
			uint32_t pid;
		} started;
		struct {
			const uint8_t *data; /* inside the frame's payload */
			size_t len;
		} data;
		struct {
			uint32_t signaled, value;
			uint64_t user_us, system_us, max_rss_kib;
		} exit;
		struct err failed;
		struct {
			uint32_t count;
			const uint8_t *pairs; /* count times u32 nr, u32 times, little-endian */
		} denied;
		struct {
			uint64_t size;
			uint32_t mode;
		} file;
		struct {
			uint32_t type, mode;
			uint64_t size, mtime_ns;
			const char *path; /* path_len bytes, no NUL inside, not ended */
			size_t path_len;
		} entry;
		struct {
			uint64_t bytes;
		} done;
		struct {
			uint32_t bytes;
		} credit;
	};
};

int agent_decode(const struct frame *frame, struct agent_message *ret_message, struct err *err);

/* The payload of an AGENT_EXEC.  argv and envp end with NULL; envp and cwd may be NULL: empty, and
 * "/".  ERR_LIMIT when it does not fit the wire's bounds. */
struct agent_exec {
	uint32_t flags;
	const char *const *argv;
	const char *const *envp;
	const char *cwd;
	uint32_t rows, columns; /* EXEC_PTY */
};
int agent_pack_exec(struct pack *pack, const struct agent_exec *exec, struct err *err);
