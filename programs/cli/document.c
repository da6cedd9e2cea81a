/* SPDX-License-Identifier: Apache-2.0 */
#include "document.h"

#include "base/auto.h"
#include "base/err.h"
#include "facts.h"
#include "receipt/base64.h"
#include "receipt/statement.h"
#include "run.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 4096

/* Head and tail as one piece of memory, with `gap` between them when bytes were dropped. */
static uint8_t *join(const struct output *output, const char *gap, size_t *ret_len)
{
	const uint8_t *pieces[2];
	size_t lens[2], gap_len = strlen(gap);

	output_tail(output, pieces, lens);
	uint8_t *all = malloc(output->head_len + gap_len + lens[0] + lens[1] + 1), *at = all;
	if (!all)
		return NULL;
	if (output->head_len > 0)
		at = mempcpy(at, output->head, output->head_len);
	at = mempcpy(at, gap, gap_len);
	for (int i = 0; i < 2; i++)
		if (lens[i] > 0)
			at = mempcpy(at, pieces[i], lens[i]);
	*ret_len = (size_t)(at - all);
	return all;
}

/* A cut may have gone through a character: its pieces beside the gap become '?', so that text
 * stays text. */
static void mend_cut(uint8_t *all, size_t head_len, size_t gap_len, size_t len)
{
	size_t at = head_len;

	for (int back = 0; back < 3 && at > 0; back++) {
		uint8_t c = all[--at];
		if (c < 0x80)
			break;
		size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;
		if (want > head_len - at)
			memset(all + at, '?', head_len - at);
		if (want > 0)
			break;
	}
	for (at = head_len + gap_len; at < len && at < head_len + gap_len + 3; at++) {
		if ((all[at] & 0xc0) != 0x80)
			break;
		all[at] = '?';
	}
}

static json_t *as_base64(const struct output *output)
{
	size_t len = 0;
	auto_free uint8_t *all = join(output, "", &len);
	auto_free char *text = all ? malloc(BASE64_LEN(len) + 1) : NULL;

	if (!text)
		return NULL;
	base64_encode(all, len, text);
	return json_stringn_nocheck(text, BASE64_LEN(len));
}

static json_t *as_text(const struct output *output)
{
	char gap[96] = "";
	size_t len = 0;

	if (output_dropped(output) > 0)
		snprintf(gap, sizeof(gap), "\n[cay: %llu bytes dropped]\n",
			 (unsigned long long)output_dropped(output));
	auto_free uint8_t *all = join(output, gap, &len);
	if (!all)
		return NULL;
	if (gap[0])
		mend_cut(all, output->head_len, strlen(gap), len);
	/* NULL when it is not UTF-8. */
	return json_stringn((const char *)all, len);
}

/* KEY is the text; KEY_info says how long it was and what is missing. */
static void put_stream(json_t *doc, const char *key, const struct output *output)
{
	json_t *text = as_text(output);
	const char *encoding = text ? "utf-8" : "base64";
	char info[32];

	snprintf(info, sizeof(info), "%s_info", key);
	json_object_set_new(doc, key, text ? text : as_base64(output));
	json_object_set_new(doc, info,
			    json_pack("{s:s, s:I, s:b, s:I, s:I}", "encoding", encoding, "bytes",
				      (json_int_t)output->total, "truncated",
				      output_dropped(output) > 0, "dropped_bytes",
				      (json_int_t)output_dropped(output), "head_bytes",
				      (json_int_t)output->head_len));
}

static json_t *result_path(const struct result_file *file)
{
	char path[2 * PATH_MAX];
	bool here = strcmp(file->dir, ".") == 0;

	snprintf(path, sizeof(path), "%s%s%s", here ? "" : file->dir, here ? "" : "/", file->name);
	return statement_text(path, strlen(path), NAME_MAX_BYTES);
}

static json_t *result_files(const struct results *results)
{
	json_t *list = json_array();

	for (size_t i = 0; i < results->n; i++) {
		const struct result_file *file = &results->files[i];
		if (!file->sha256[0])
			continue;
		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:I, s:s}", "name",
						statement_text(file->inside, strlen(file->inside),
							       NAME_MAX_BYTES),
						"path", result_path(file), "size",
						(json_int_t)file->bytes, "sha256", file->sha256));
	}
	return list;
}

static json_t *failed_files(const struct results *results)
{
	json_t *list = json_array();

	for (size_t i = 0; i < results->n_failures; i++) {
		const struct result_failure *failure = &results->failures[i];
		json_array_append_new(
			list, json_pack("{s:o, s:o}", "name",
					statement_text(failure->name, strlen(failure->name),
						       NAME_MAX_BYTES),
					"reason",
					statement_text(failure->reason, strlen(failure->reason),
						       NAME_MAX_BYTES)));
	}
	return list;
}

static json_t *receipt(const struct run *run)
{
	char path[PATH_MAX + sizeof(RECEIPT_CHAIN) + 1];

	if (!run->has_receipt)
		return json_null();
	snprintf(path, sizeof(path), "%s/" RECEIPT_CHAIN, run->state);
	return json_pack("{s:s, s:I, s:s, s:s, s:o}", "id", run->receipt.id, "seq",
			 (json_int_t)run->receipt.seq, "sha256", run->receipt.sha256, "key_id",
			 run->receipt.key_id, "path",
			 statement_text(path, strlen(path), NAME_MAX_BYTES));
}

static void put_end(json_t *doc, const struct run *run)
{
	const struct ending *e = &run->ending;
	bool exited = e->is_over && !e->signaled;

	json_object_set_new(doc, "cause", json_string(cause_name(run->outcome.cause)));
	json_object_set_new(doc, "cause_detail", facts_cause(run));
	json_object_set_new(doc, "flags", facts_flags(run));
	/* What `cay run` itself would exit with; the program's own where it had one. */
	json_object_set_new(doc, "exit_code",
			    json_integer(exited ? (json_int_t)e->value : run->outcome.exit_code));
	json_object_set_new(doc, "signal",
			    e->is_over && e->signaled ? json_integer(e->value) : json_null());
}

int document_print(struct run *run, const struct err *failure)
{
	json_t *doc = json_object();

	json_object_set_new(doc, "id", json_string(run->id));
	if (failure)
		json_object_set_new(doc, "error",
				    json_pack("{s:s, s:o, s:n}", "code", err_code(failure),
					      "message",
					      statement_text(failure->text, strlen(failure->text),
							     NAME_MAX_BYTES),
					      "hint"));
	put_end(doc, run);
	put_stream(doc, "stdout", &run->streams[STREAM_STDOUT]);
	put_stream(doc, "stderr", &run->streams[STREAM_STDERR]);
	json_object_set_new(doc, "files", result_files(&run->results));
	json_object_set_new(doc, "files_failed", failed_files(&run->results));
	json_object_set_new(doc, "usage", facts_usage(run));
	json_object_set_new(doc, "limits", facts_limits(run));
	json_object_set_new(doc, "start", json_string("cold"));
	json_object_set_new(doc, "isolation", facts_isolation(run));
	json_object_set_new(doc, "runtime", facts_runtime(run));
	json_object_set_new(doc, "denied_system_calls", facts_denied(run));
	json_object_set_new(doc, "receipt", receipt(run));
	int r = json_dumpf(doc, stdout, JSON_COMPACT);
	json_decref(doc);
	putchar('\n');
	return r < 0 || fflush(stdout) != 0 ? -1 : 0;
}
