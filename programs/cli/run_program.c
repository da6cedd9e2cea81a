/* SPDX-License-Identifier: Apache-2.0
 *
 * What is executed in the sandbox, in which order. */
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "run.h"
#include "run_pump.h"
#include "say.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define CODE_DIR "/tmp/code/"

enum { CHANNEL_WRITE = 1, CHANNEL_COMPILE, CHANNEL_RUN };

/* A terminal is only read when asked; /dev/null need not be carried over byte by byte. */
static bool passes_stdin(const struct run *run)
{
	struct stat st;

	if (run->job->code_from_stdin || fstat(STDIN_FILENO, &st) < 0)
		return false;
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return false;
	return run->options->interactive || !isatty(STDIN_FILENO);
}

/* Where the code is inside; it is sent there unless it lies in the workspace. */
static int place_code(struct run *run, char ret_path[static PATH_MAX], struct err *err)
{
	const struct job *job = run->job;

	if (job->in_place[0]) {
		memcpy(ret_path, job->in_place, sizeof(job->in_place));
		return 0;
	}
	const char *name = job->code_name ? job->code_name : job->plan->file_name;
	snprintf(ret_path, PATH_MAX, CODE_DIR "%s", name);
	return link_put_file(&run->link, CHANNEL_WRITE, ret_path, 0644, job->code, job->code_len,
			     err);
}

static int execute(struct run *run, uint32_t channel, const char *const *argv, struct err *err)
{
	struct agent_exec exec = {
		.flags = channel == CHANNEL_RUN && passes_stdin(run) ? EXEC_STDIN : 0,
		.argv = argv,
		.envp = (const char *const *)run->job->env,
		.cwd = run->job->cwd,
	};

	say_escape(run->ending.program, sizeof(run->ending.program), argv[0], strlen(argv[0]));
	return pump_program(run, channel, &exec, err);
}

/* False when the compiler did not like it: then that is how the run ended. */
static int compile(struct run *run, const char *file, bool *ret_ok, struct err *err)
{
	const char *argv[RUNTIME_ARGS_MAX + 1];

	*ret_ok = true;
	if (!run->job->plan->compile[0])
		return 0;
	runtime_argv(run->job->plan->compile, file, argv);
	int r = execute(run, CHANNEL_COMPILE, argv, err);
	*ret_ok = r >= 0 && run->ending.is_over && !run->ending.signaled &&
		  run->ending.value == 0 && !run->ending.timed_out && !run->ending.cancelled;
	if (*ret_ok)
		run->ending.is_over = false;
	return r;
}

static int run_code(struct run *run, struct err *err)
{
	const struct job *job = run->job;
	char file[PATH_MAX];
	bool ok;
	auto_free const char **argv = calloc(RUNTIME_ARGS_MAX + job->n_args + 1, sizeof(*argv));

	if (!argv)
		return err_errno(err, ENOMEM, "start the program");
	int r = place_code(run, file, err);
	if (r >= 0)
		r = compile(run, file, &ok, err);
	if (r < 0 || !ok)
		return r;
	size_t n = runtime_argv(job->plan->run, file, argv);
	for (size_t i = 0; i < job->n_args; i++)
		argv[n + i] = job->args[i];
	return execute(run, CHANNEL_RUN, argv, err);
}

static int run_argv(struct run *run, struct err *err)
{
	const struct job *job = run->job;
	auto_free const char **argv = calloc(job->n_args + 1, sizeof(*argv));

	if (!argv)
		return err_errno(err, ENOMEM, "start the program");
	for (size_t i = 0; i < job->n_args; i++)
		argv[i] = job->args[i];
	return execute(run, CHANNEL_RUN, argv, err);
}

int run_program(struct run *run, struct err *err)
{
	run->times.program = clock_mono_us();
	run->deadline_ms = run->times.program / 1000 + (int64_t)run->job->limits.wall_ms;
	int r = run->job->code ? run_code(run, err) : run_argv(run, err);
	run->times.end = clock_mono_us();
	run->ending.wall_ms = (uint64_t)(run->times.end - run->times.program) / 1000;
	for (int i = 0; i < STREAMS; i++)
		run->ending.dropped_bytes[i] = output_dropped(&run->streams[i]);
	return r;
}
