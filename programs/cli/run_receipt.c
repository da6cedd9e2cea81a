/* SPDX-License-Identifier: Apache-2.0 */
#include "run_receipt.h"

#include "base/auto.h"
#include "base/err.h"
#include "facts.h"
#include "receipt/statement.h"
#include "run.h"

#include <errno.h>
#include <string.h>

#define NAME_MAX_BYTES 512
#define ARGV_SHOWN_BYTES 2048
#define LIST_MAX_BYTES 8192
#define SUBJECTS_MAX 18 /* both streams and the first results */

static json_t *who(const struct run *run)
{
	return json_pack("{s:I, s:I, s:o}", "uid", (json_int_t)getuid(), "gid",
			 (json_int_t)getgid(), "user",
			 statement_text(run->user, strlen(run->user), sizeof(run->user)));
}

static json_t *argv_facts(const struct job *job)
{
	struct digest digest;
	char hex[DIGEST_HEX_SIZE];
	json_t *shown = json_array();
	size_t bytes = 0;

	digest_init(&digest);
	for (size_t i = 0; i < job->n_args; i++) {
		size_t len = strlen(job->args[i]);
		/* With its NUL, so that "a b" and "a", "b" differ. */
		digest_update(&digest, job->args[i], len + 1);
		bytes += len;
		if (bytes <= ARGV_SHOWN_BYTES)
			json_array_append_new(shown,
					      statement_text(job->args[i], len, NAME_MAX_BYTES));
	}
	digest_final(&digest, hex);
	return json_pack("{s:I, s:s, s:o}", "count", (json_int_t)job->n_args, "sha256", hex,
			 "shown", shown);
}

static json_t *code_facts(const struct job *job)
{
	if (!job->code)
		return json_null();
	const char *name = job->code_name ? job->code_name : "";
	return json_pack("{s:s, s:I, s:o}", "sha256", job->code_sha256, "bytes",
			 (json_int_t)job->code_len, "name",
			 statement_text(name, strlen(name), NAME_MAX_BYTES));
}

static json_t *file_fact(const char *name, const char *sha256, uint64_t bytes)
{
	return json_pack("{s:o, s:s?, s:I}", "name",
			 statement_text(name, strlen(name), NAME_MAX_BYTES), "sha256",
			 sha256[0] ? sha256 : NULL, "bytes", (json_int_t)bytes);
}

static json_t *inputs(const struct job *job)
{
	json_t *list = json_array();

	for (size_t i = 0; i < job->n_inputs; i++)
		json_array_append_new(list, file_fact(job->inputs[i].name, job->inputs[i].sha256,
						      job->inputs[i].bytes));
	return list;
}

static json_t *outputs(const struct results *results)
{
	json_t *list = json_array();

	for (size_t i = 0; i < results->n; i++)
		if (results->files[i].sha256[0])
			json_array_append_new(list, file_fact(results->files[i].inside,
							      results->files[i].sha256,
							      results->files[i].bytes));
	return list;
}

/* What the client has of a stream that was cut: head and tail, one after the other. */
static void put_kept(json_t *object, const struct output *output)
{
	const uint8_t *pieces[2];
	size_t lens[2];
	struct digest digest;
	char hex[DIGEST_HEX_SIZE];

	digest_init(&digest);
	digest_update(&digest, output->head, output->head_len);
	output_tail(output, pieces, lens);
	for (int i = 0; i < 2; i++)
		digest_update(&digest, pieces[i], lens[i]);
	digest_final(&digest, hex);
	json_object_set_new(object, "kept_sha256", json_string(hex));
}

static json_t *stream(const struct output *output, const char *sha256)
{
	uint64_t dropped = output_dropped(output);
	json_t *object = json_pack("{s:s, s:I, s:I}", "sha256", sha256, "bytes",
				   (json_int_t)output->total, "dropped_bytes", (json_int_t)dropped);

	if (dropped > 0)
		put_kept(object, output);
	return object;
}

static json_t *workspace(const struct job *job)
{
	static const char *const kinds[] = { "own", "none", "directory" };

	json_t *object = json_pack("{s:s}", "kind", kinds[job->workspace]);
	if (job->workspace == WORKSPACE_DIR) {
		json_object_set_new(object, "path",
				    statement_text(job->workspace_dir, strlen(job->workspace_dir),
						   NAME_MAX_BYTES));
		json_object_set_new(object, "writable", json_boolean(job->workspace_writable));
	}
	return object;
}

static json_t *policy(const struct job *job)
{
	json_t *object = json_pack("{s:s, s:o}", "network", "none", "workspace", workspace(job));

	if (job->image[0])
		json_object_set_new(object, "image",
				    statement_text(job->image, strlen(job->image), NAME_MAX_BYTES));
	return object;
}

static void put_end(json_t *p, const struct run *run)
{
	const struct ending *e = &run->ending;

	json_object_set_new(p, "cause", json_string(cause_name(run->outcome.cause)));
	json_object_set_new(p, "cause_detail", facts_cause(run));
	json_object_set_new(p, "flags", facts_flags(run));
	json_object_set_new(p, "exit_code", json_integer(run->outcome.exit_code));
	json_object_set_new(p, "signal",
			    e->is_over && e->signaled ? json_integer(e->value) : json_null());
}

static json_t *predicate(const struct run *run, char hex[STREAMS][DIGEST_HEX_SIZE])
{
	json_t *p = json_object();

	json_object_set_new(p, "execution", json_string(run->id));
	json_object_set_new(p, "who", who(run));
	json_object_set_new(p, "program", json_string("cay " CAY_VERSION));
	json_object_set_new(p, "runtime", facts_runtime(run));
	json_object_set_new(p, "code", code_facts(run->job));
	json_object_set_new(p, "argv", argv_facts(run->job));
	json_object_set_new(p, "inputs", inputs(run->job));
	json_object_set_new(p, "outputs", outputs(&run->results));
	json_object_set_new(p, "stdout", stream(&run->streams[STREAM_STDOUT], hex[STREAM_STDOUT]));
	json_object_set_new(p, "stderr", stream(&run->streams[STREAM_STDERR], hex[STREAM_STDERR]));
	json_object_set_new(p, "isolation", facts_isolation(run));
	json_object_set_new(p, "policy", policy(run->job));
	json_object_set_new(p, "limits", facts_limits(run));
	json_object_set_new(p, "usage", facts_usage(run));
	json_object_set_new(p, "denied_system_calls", facts_denied(run));
	put_end(p, run);
	statement_cap_list(p, "inputs", LIST_MAX_BYTES);
	statement_cap_list(p, "outputs", LIST_MAX_BYTES);
	statement_cap_list(p, "denied_system_calls", LIST_MAX_BYTES);
	return p;
}

static size_t fill_subjects(const struct run *run, char hex[STREAMS][DIGEST_HEX_SIZE],
			    struct receipt_subject subjects[SUBJECTS_MAX])
{
	size_t n = 0;

	subjects[n++] = (struct receipt_subject){ "stdout", hex[STREAM_STDOUT] };
	subjects[n++] = (struct receipt_subject){ "stderr", hex[STREAM_STDERR] };
	for (size_t i = 0; i < run->results.n && n < SUBJECTS_MAX; i++) {
		const struct result_file *file = &run->results.files[i];
		if (file->sha256[0] && strlen(file->inside) <= 256)
			subjects[n++] = (struct receipt_subject){ file->inside, file->sha256 };
	}
	return n;
}

int run_write_receipt(struct run *run, struct err *err)
{
	char hex[STREAMS][DIGEST_HEX_SIZE];
	struct receipt_subject subjects[SUBJECTS_MAX];

	/* A set-up that failed early has not opened them yet. */
	if (!run->receipts) {
		int r = receipts_open(run->state, &run->receipts, err);
		if (r < 0)
			return r;
	}
	for (int i = 0; i < STREAMS; i++) {
		struct digest copy = run->streams[i].digest;
		digest_final(&copy, hex[i]);
	}
	json_t *p = predicate(run, hex);
	int r = receipt_append(run->receipts, p, subjects, fill_subjects(run, hex, subjects),
			       &run->receipt, err);
	json_decref(p);
	run->has_receipt = r >= 0;
	return r;
}
