/* SPDX-License-Identifier: Apache-2.0
 *
 * cay run: arguments -> job -> sandbox -> program -> results -> outcome -> receipt -> exit code. */
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli.h"
#include "document.h"
#include "run.h"
#include "run_receipt.h"
#include "run_show.h"
#include "say.h"
#include "state.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* From here on signals come as bytes: what was begun gets its receipt and leaves nothing. */
static int catch_signals(struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_errno(err, errno, "catch signals") : fd;
}

static int prepare(struct run *run, struct err *err)
{
	const struct run_options *options = run->options;
	int r = state_dir(run->state, err);

	if (r >= 0)
		r = job_find_runtime(run->job, options, run->state, err);
	if (r >= 0)
		r = job_make_env(run->job, options, err);
	if (r >= 0)
		r = id_make(run->id, ID_EXECUTION, err);
	if (r >= 0)
		r = id_make(run->sandbox_id, ID_SANDBOX, err);
	if (r >= 0)
		r = catch_signals(err);
	if (r < 0)
		return r;
	run->signal_fd = r;
	run->ending.limits = run->job->limits;
	for (int i = 0; i < STREAMS; i++)
		output_init(&run->streams[i], run->job->limits.output_bytes);
	run->times.planned = clock_mono_us();
	return 0;
}

static void tell_plan(const struct run *run)
{
	const struct runtime_plan *plan = run->job->plan;

	/* Which version was picked matters to a person; a script sees it in the document. */
	if (plan && plan->note[0] && (run->options->verbose || isatty(STDERR_FILENO)))
		say("%s", plan->note);
	if (run->options->verbose && plan)
		say("%s %s", plan->name, plan->version);
}

/* Everything between the first process and the last. */
static void do_run(struct run *run)
{
	struct err err;
	bool failed = run_start(run, &err) >= 0 && run_program(run, &err) < 0;

	/* That the sandbox is gone is the outcome, which says it in words. */
	if (failed && !run->ending.setup_failed && err.errnum != EPIPE)
		say_error(&err);
	if (!run->options->json)
		run_show_rest(run);
	if (!run->ending.cancelled && !run->ending.setup_failed)
		results_collect(run);
	run->times.collected = clock_mono_us();
	run_stop(run);
	outcome_decide(&run->ending, &run->outcome);
}

static void finish(struct run *run)
{
	warden_finish(&run->warden);
	for (int i = 0; i < STREAMS; i++)
		output_finish(&run->streams[i]);
	results_finish(&run->results);
	receipt_finish(&run->receipt);
	receipts_close(run->receipts);
	drop_fd(&run->signal_fd);
}

static void tell_write_error(const struct run *run)
{
	struct err err;

	if (run->write_errno == 0)
		return;
	err_errno(&err, run->write_errno, "write what the program printed");
	say_error(&err);
}

/* Output or a result that did not arrive must not look like success. */
static int exit_code(const struct run *run, bool failed)
{
	bool program_was_fine = run->outcome.exit_code == EXIT_DONE;

	return failed || ((run->results.failed || run->write_errno) && program_was_fine)
		       ? EXIT_CAY_FAILED
		       : run->outcome.exit_code;
}

/* One failure is one sentence, also where the same full disk stops the receipt. */
static int join_failures(const struct err *setup, struct err *err)
{
	return err_make(err, setup->kind, "%.460s; nor could its receipt be written", setup->text);
}

static int report(struct run *run)
{
	struct err err;
	const struct err *failure = run->ending.setup_failed ? &run->ending.setup : NULL;
	bool json = run->options->json;

	bool unsigned_ = run_write_receipt(run, &err) < 0;
	run->times.signed_ = clock_mono_us();
	if (unsigned_) {
		if (failure)
			join_failures(failure, &err);
		else
			err_while(&err, "write the receipt of this run");
		failure = &err;
	}
	if (!json && !run->ending.setup_failed)
		run_show_outcome(run);
	tell_write_error(run);
	if (!json && failure)
		say_error(failure);
	int code = exit_code(run, unsigned_);
	if (json && document_print(run, failure) < 0)
		code = EXIT_CAY_FAILED;
	if (run->options->verbose)
		run_show_times(run);
	return code;
}

static int run_job(const struct run_options *options, struct job *job, int64_t start_us)
{
	struct run run = { .options = options, .job = job, .signal_fd = -1, .link = { .fd = -1 } };
	struct err err;

	run.times.start = start_us;
	int r = prepare(&run, &err);
	if (r < 0) {
		/* A language or a variable that is not there is a wrong argument, too. */
		int code = err.kind == ERR_INVALID ? EXIT_USAGE : EXIT_CAY_FAILED;
		return say_failure(&err, NULL, options->json, code);
	}
	tell_plan(&run);
	do_run(&run);
	int code = report(&run);
	finish(&run);
	return code;
}

int cmd_run(int argc, char **argv)
{
	struct run_options options = { 0 };
	struct operands operands;
	struct job job = { 0 };
	struct err err;
	int64_t start_us = clock_mono_us();
	int code = EXIT_DONE;

	int r = options_parse(&run_option_set, argc, argv, &options, &operands, &err);
	say_set_quiet(options.quiet);
	if (r >= 0 && r != OPTIONS_HELPED)
		r = job_make(&job, &options, &operands, &err);
	if (r < 0) {
		code = err.kind == ERR_INVALID ? EXIT_USAGE : EXIT_CAY_FAILED;
		say_failure(&err, NULL, options.json, code);
	} else if (r != OPTIONS_HELPED) {
		code = run_job(&options, &job, start_us);
	}
	job_finish(&job);
	run_options_finish(&options);
	return code;
}
