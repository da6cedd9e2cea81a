/* SPDX-License-Identifier: Apache-2.0
 *
 * outcome.h - why a run ended: exactly one cause, any number of flags, each with a sentence that
 * a person or a model can act on.
 *
 * The facts of the end (struct ending) are gathered while the run goes on; outcome_decide() turns
 * them into words and an exit code.  It looks at nothing else, so it can be tested alone. */
#pragma once

#include "base/err.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cause {
	CAUSE_EXITED,
	CAUSE_SIGNALED,
	CAUSE_TIMEOUT,
	CAUSE_CPU_TIME,
	CAUSE_OOM,
	CAUSE_INTERRUPTED,
	CAUSE_CANCELLED,
	CAUSE_SESSION_CLOSED,
	CAUSE_KERNEL_DIED,
	CAUSE_SETUP_FAILED,
	CAUSE_EVICTED,
	CAUSE_SERVICE_RESTARTED,
	CAUSES_
};

const char *cause_name(enum cause cause);

/* System calls that the sandbox refused, by number; the agent's word. */
#define DENIED_MAX 64
struct denied_call {
	uint32_t nr;
	uint64_t times;
};

/* What happened. */
struct ending {
	bool is_over;  /* the program ended, by itself or by us; value and signaled count */
	bool signaled; /* value is a signal, else an exit code */
	uint32_t value;
	uint64_t cpu_us, max_rss_bytes; /* of the program and its children; the agent's word */
	bool timed_out;                 /* the wall clock ran out */
	bool interrupted;               /* SIGINT was passed on */
	bool cancelled;    /* somebody ended it: Ctrl-C twice, SIGTERM, nobody reads stdout */
	int cancel_signal; /* which signal told us to */
	bool sandbox_lost; /* the agent or the warden went away under it */
	bool not_started;  /* exec failed: start_errno; program is its name */
	int start_errno;
	char program[256]; /* printable */
	bool setup_failed; /* setup says why; nothing of the user's was run */
	struct err setup;

	uint64_t wall_ms;
	uint64_t dropped_bytes[2]; /* of stdout and stderr */
	struct denied_call denied[DENIED_MAX];
	size_t n_denied;
	struct usage usage;
	struct limits limits;
	struct enforcement by;
};

#define OUTCOME_SENTENCE 640
#define OUTCOME_FLAGS_MAX 8

/* number and limit are in the unit of the thing: bytes, milliseconds, processes; limit 0: none. */
struct outcome_note {
	const char *name; /* of a flag or of the cause */
	uint64_t number, limit;
	bool retryable; /* the same again may well succeed */
	bool is_minor;  /* for the records; a person need not read it */
	char sentence[OUTCOME_SENTENCE];
};

struct outcome {
	enum cause cause;
	struct outcome_note note;
	struct outcome_note flags[OUTCOME_FLAGS_MAX];
	size_t n_flags;
	int exit_code;   /* of cay */
	bool is_notable; /* more than a plain exit: a person wants the sentence */
};

void outcome_decide(const struct ending *ending, struct outcome *ret_outcome);
