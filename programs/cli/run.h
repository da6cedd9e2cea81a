/* SPDX-License-Identifier: Apache-2.0
 *
 * run.h - one run, from the checked job to the exit code.
 *
 * The order: run_start() makes the sandbox, run_program() runs in it, results_collect() brings
 * files back, run_stop() gives everything back, then come outcome, receipt and document.  Each
 * step leaves its facts in struct run; a step that fails leaves them too. */
#pragma once

#include "base/id.h"
#include "link.h"
#include "outcome.h"
#include "output.h"
#include "receipt/receipt.h"
#include "results.h"
#include "run_job.h"
#include "wire/warden.h"

enum { STREAM_STDOUT, STREAM_STDERR, STREAMS };

/* Points in time for -v, in microseconds of the monotonic clock. */
struct run_times {
	int64_t start, planned, spawned, sandbox, program, end, collected, stopped, signed_;
};

struct run {
	const struct run_options *options; /* borrowed */
	struct job *job;                   /* borrowed */
	char state[PATH_MAX];
	char user[64];    /* who runs it, by name; empty: the uid has none */
	char id[ID_SIZE]; /* of the execution */
	char sandbox_id[ID_SIZE];

	int signal_fd;
	int64_t deadline_ms; /* the wall clock; 0: not started */
	struct warden warden;
	struct link link;
	struct sandbox_facts facts; /* when has_facts */
	bool has_facts;
	bool agent_is_there; /* it can still be asked for files */

	struct output streams[STREAMS];
	int write_errno; /* our stdout or stderr could not be written */
	struct results results;
	struct ending ending;
	struct outcome outcome;

	struct receipts *receipts; /* owned */
	struct receipt receipt;
	bool has_receipt;
	struct run_times times;
};

/* Spawns the warden, creates the sandbox, and opens the receipts meanwhile.  On failure
 * ending.setup_failed or ending.cancelled is set. */
int run_start(struct run *run, struct err *err);

/* Writes the code and runs the program (and before it the compiler).  How it ended is in
 * run->ending; fails only when the sandbox cannot be spoken to. */
int run_program(struct run *run, struct err *err);

/* Takes signals that came: once SIGINT is passed on, everything else cancels. */
void run_take_signals(struct run *run, uint32_t channel);

/* Ends every process of the sandbox but the agent, or with it when that does not help. */
void run_cancel(struct run *run, int signal);

/* Gives everything back and takes the last usage.  Cannot fail; call it once. */
void run_stop(struct run *run);
