/* SPDX-License-Identifier: Apache-2.0
 *
 * run_job.h - what is to be run, checked: every name exists, every number is in range, nothing
 * contradicts.  Making a job changes nothing in the world; what is wrong is ERR_INVALID or
 * ERR_NOT_FOUND with one sentence that names it and the right form. */
#pragma once

#include "receipt/digest.h"
#include "run_options.h"
#include "runtime/runtime.h"
#include "wire/limits.h"
#include "wire/warden.h"

#include <limits.h>

#define JOB_CODE_MAX (16u << 20)
#define JOB_ARGV_MAX (1u << 20)
#define JOB_INPUTS_MAX 40
#define JOB_OUTS_MAX 32

enum workspace_kind {
	WORKSPACE_OWN,  /* scratch, gone with the sandbox */
	WORKSPACE_NONE, /* only /tmp */
	WORKSPACE_DIR,  /* a directory of the user's */
};

struct job_input {
	char path[PATH_MAX]; /* absolute */
	const char *name;    /* in /workspace/input; inside path */
	char sha256[DIGEST_HEX_SIZE];
	uint64_t bytes;
};

/* --out GLOB=DIR */
struct job_out {
	char *glob;      /* owned */
	const char *dir; /* inside glob; "." by default */
};

struct job {
	/* What to run: code in a language, or an argv as it is. */
	uint8_t *code; /* owned; NULL: argv is the program */
	size_t code_len;
	char code_sha256[DIGEST_HEX_SIZE];
	const char *code_name;   /* its file name inside, or NULL: the runtime picks one */
	char in_place[PATH_MAX]; /* its path inside when it lies in the workspace; else empty */
	bool code_from_stdin;
	char **args; /* argv's own: program and arguments, or arguments of the code; not ended by
			NULL */
	size_t n_args;

	struct limits limits;
	enum tier tier;
	uint32_t require; /* bits 1 << enum layer */

	enum workspace_kind workspace;
	bool workspace_writable;
	char workspace_dir[PATH_MAX]; /* absolute; WORKSPACE_DIR */
	char image[PATH_MAX];         /* absolute, or empty */
	const char *cwd;              /* inside */

	struct job_input *inputs; /* owned */
	size_t n_inputs;
	struct job_out outs[JOB_OUTS_MAX];
	size_t n_outs;

	struct runtime_plan *plan; /* owned; NULL: no language */
	char **env;                /* owned, each too; KEY=VALUE, ended by NULL */
	size_t n_env;
};

int job_make(struct job *job, const struct run_options *options, const struct operands *operands,
	     struct err *err);
void job_finish(struct job *job);

/* The parts of job_make(), each in a file of its own. */
int job_read_code(struct job *job, const struct run_options *options,
		  const struct operands *operands, struct err *err);
int job_read_limits(struct job *job, const struct run_options *options, struct err *err);
int job_read_files(struct job *job, const struct run_options *options, struct err *err);

/* Finds the language; needs the state directory for what is remembered. */
int job_find_runtime(struct job *job, const struct run_options *options, const char *state_dir,
		     struct err *err);

/* The environment: ours, the runtime's, --env-file, -e; later ones win.  After the runtime. */
int job_make_env(struct job *job, const struct run_options *options, struct err *err);

/* The request to the warden. */
int job_fill_create(const struct job *job, struct warden_create *create, struct err *err);
