/* SPDX-License-Identifier: Apache-2.0 */
#include "run_job.h"

#include "base/auto.h"
#include "base/err.h"

#include <errno.h>
#include <string.h>

static int check_args(const struct job *job, struct err *err)
{
	size_t bytes = 0;

	for (size_t i = 0; i < job->n_args; i++)
		bytes += strlen(job->args[i]) + 1;
	if (bytes > JOB_ARGV_MAX)
		return err_make(
			err, ERR_INVALID,
			"the arguments are %zu bytes in all; at most 1 MiB (%u bytes) can be "
			"given, use --in FILE for more",
			bytes, JOB_ARGV_MAX);
	return 0;
}

/* An absolute working directory inside; /workspace, or /tmp where there is none. */
static int read_cwd(struct job *job, const struct run_options *options, struct err *err)
{
	job->cwd = job->workspace == WORKSPACE_NONE ? "/tmp" : "/workspace";
	if (!options->cwd)
		return 0;
	if (options->cwd[0] != '/' || strlen(options->cwd) >= PATH_MAX)
		return err_make(
			err, ERR_INVALID,
			"the working directory '%.200s' must be an absolute path inside the "
			"sandbox, such as /workspace/src",
			options->cwd);
	job->cwd = options->cwd;
	return 0;
}

int job_make(struct job *job, const struct run_options *options, const struct operands *operands,
	     struct err *err)
{
	int r = job_read_limits(job, options, err);

	if (r >= 0)
		r = job_read_files(job, options, err);
	if (r >= 0)
		r = job_read_code(job, options, operands, err);
	if (r >= 0)
		r = check_args(job, err);
	if (r >= 0)
		r = read_cwd(job, options, err);
	return r;
}

void job_finish(struct job *job)
{
	free(job->code);
	free(job->inputs);
	free(job->plan);
	for (size_t i = 0; i < job->n_outs; i++)
		free(job->outs[i].glob);
	for (size_t i = 0; i < job->n_env; i++)
		free(job->env[i]);
	free(job->env);
	*job = (struct job){ 0 };
}

int job_find_runtime(struct job *job, const struct run_options *options, const char *state_dir,
		     struct err *err)
{
	if (!job->code && !options->lang)
		return 0;
	struct runtime_want want = {
		.lang = options->lang,
		.file = job->code_name,
		.head = (const char *)job->code,
		.head_len = job->code_len,
		.cpus = job->limits.cpu_millis < 1000 ? 1 : job->limits.cpu_millis / 1000,
		.image = job->image[0] != '\0',
		.no_layer = options->no_layer,
	};
	struct runtimes *runtimes = NULL;
	int r = runtimes_open(state_dir, NULL, &runtimes, err);
	if (r < 0)
		return r;
	job->plan = calloc(1, sizeof(*job->plan));
	r = job->plan ? runtimes_plan(runtimes, &want, job->plan, err)
		      : err_errno(err, ENOMEM, "keep the runtime");
	runtimes_close(runtimes);
	return r;
}

static int add_runtime(const struct job *job, struct warden_create *create, struct err *err)
{
	const struct runtime_plan *plan = job->plan;

	if (!plan || (!plan->prefix[0] && !plan->layer[0]))
		return 0;
	/* An interpreter of /usr is there already; its libraries are laid over what is there. */
	const char *source = plan->prefix[0] ? plan->prefix : plan->target;
	return warden_create_bind(create, BIND_TREE, source, plan->target, plan->layer, err);
}

int job_fill_create(const struct job *job, struct warden_create *create, struct err *err)
{
	create->limits = job->limits;
	create->tier = job->tier;
	create->require = job->require;
	create->own_workspace = job->workspace == WORKSPACE_OWN;
	int r = add_runtime(job, create, err);
	if (r >= 0 && job->image[0])
		r = warden_create_bind(create, BIND_IMAGE, job->image, "", "", err);
	if (r >= 0 && job->workspace == WORKSPACE_DIR)
		r = warden_create_bind(
			create, job->workspace_writable ? BIND_WORKSPACE_RW : BIND_WORKSPACE_RO,
			job->workspace_dir, "", "", err);
	for (size_t i = 0; r >= 0 && i < job->n_inputs; i++)
		r = warden_create_bind(create, BIND_INPUT, job->inputs[i].path, job->inputs[i].name,
				       "", err);
	return r;
}
