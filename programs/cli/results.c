/* SPDX-License-Identifier: Apache-2.0 */
#include "results.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "results_fetch.h"
#include "run.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define RESULTS_MAX 10000
#define COMPLAINTS_MAX 20 /* lines on stderr; the document has them all */
#define ANSWER_MS 10000
/* The time for all results together: never more, whatever the agent sends. */
#define COLLECT_MS 60000
#define COLLECT_BYTES_PER_MS 8192
#define KILL_MS 1000
#define CHANNEL_LIST 61
#define OUTPUT "output/"

void results_finish(struct results *results)
{
	for (size_t i = 0; i < results->n; i++) {
		free(results->files[i].inside);
		free(results->files[i].name);
	}
	free(results->files);
	for (size_t i = 0; i < results->n_failures; i++) {
		free(results->failures[i].name);
		free(results->failures[i].reason);
	}
	free(results->failures);
	*results = (struct results){ 0 };
}

/* For the document; without memory the error line still tells it. */
static void remember_failure(struct results *results, const char *name, const char *reason)
{
	struct result_failure *grown = reallocarray(results->failures, results->n_failures + 1,
						    sizeof(*results->failures));

	if (!grown)
		return;
	results->failures = grown;
	struct result_failure failure = { strdup(name), strdup(reason) };
	if (failure.name && failure.reason) {
		grown[results->n_failures++] = failure;
		return;
	}
	free(failure.name);
	free(failure.reason);
}

void results_complain(struct run *run, const char *name, const struct err *why)
{
	struct err err;

	remember_failure(&run->results, name, why->text);
	run->results.failed = true;
	if (run->results.n_complaints++ >= COMPLAINTS_MAX)
		return;
	err_make(&err, ERR_CONFLICT, "the result '%.120s' did not come back: %.340s", name,
		 why->text);
	say_error(&err);
}

/* Something that is no single file. */
static void complain_of_all(struct run *run, const struct err *err)
{
	say_error(err);
	remember_failure(&run->results, "", err->text);
	run->results.failed = true;
}

int results_wait(struct run *run, struct agent_message *ret_message, struct err *err)
{
	int64_t left = run->results.deadline_ms - clock_mono_ms();

	if (left <= 0)
		return err_make(err, ERR_TIMEOUT, "it took too long");
	return link_wait(&run->link, left < ANSWER_MS ? (int)left : ANSWER_MS, ret_message, err);
}

/* Control characters, and the marks that turn the direction of text or end a line, as UTF-8. */
static bool is_control(const unsigned char *s)
{
	if (s[0] < 0x20 || s[0] == 0x7f)
		return true;
	if (s[0] == 0xc2)
		return s[1] >= 0x80 && s[1] <= 0x9f;
	if (s[0] == 0xd8)
		return s[1] == 0x9c;
	if (s[0] != 0xe2)
		return false;
	if (s[1] == 0x80)
		return s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae);
	return s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9;
}

/* Why a name is not put into somebody's folder, or NULL: `rm *` would take -rf for a flag, and a
 * listing would let the terminal obey. */
static const char *what_is_odd(const char *name)
{
	if (name[0] == '-' || strstr(name, "/-"))
		return "its name begins with '-'; name it with --out";
	for (const char *c = name; *c; c++)
		if (is_control((const unsigned char *)c))
			return "its name has control characters; name it with --out";
	return NULL;
}

static bool is_hidden(const char *path)
{
	return path[0] == '.' || strstr(path, "/.") != NULL;
}

/* The part of the path below the folders that the pattern spells out: plots/a.png of plots/x*
 * is a.png. */
static const char *below_fixed_part(const char *path, const char *glob)
{
	size_t wild = strcspn(glob, "*?[\\"), cut = 0;

	for (size_t i = 0; i < wild && glob[i]; i++)
		if (glob[i] == '/')
			cut = i + 1;
	/* Without a wild card the name itself is what is left. */
	return path + cut;
}

/* Where a file of the workspace goes, or false when nobody asked for it.  *ret_literal: --out
 * spells the whole name. */
static bool find_place(struct run *run, const char *path, const char **ret_dir,
		       const char **ret_name, bool *ret_literal)
{
	const struct job *job = run->job;

	for (size_t i = 0; i < job->n_outs; i++) {
		if (fnmatch(job->outs[i].glob, path, FNM_PATHNAME | FNM_PERIOD) != 0)
			continue;
		run->results.matched |= 1u << i;
		*ret_literal = strcmp(job->outs[i].glob, path) == 0;
		*ret_dir = job->outs[i].dir;
		*ret_name = below_fixed_part(path, job->outs[i].glob);
		return true;
	}
	if (job->workspace != WORKSPACE_OWN || strncmp(path, OUTPUT, strlen(OUTPUT)) != 0)
		return false;
	*ret_literal = false;
	*ret_dir = ".";
	*ret_name = path + strlen(OUTPUT);
	if (!is_hidden(*ret_name))
		return true;
	run->results.n_skipped++;
	return false;
}

static int add(struct results *results, const char *path, const char *dir, const char *name,
	       struct err *err)
{
	if ((results->n & (results->n - 1)) == 0) {
		size_t room = results->n ? results->n * 2 : 1;
		struct result_file *grown = reallocarray(results->files, room, sizeof(*grown));
		if (!grown)
			return err_errno(err, ENOMEM, "keep the list");
		results->files = grown;
	}
	struct result_file file = { .inside = strdup(path), .name = strdup(name), .dir = dir };
	if (!file.inside || !file.name) {
		free(file.inside);
		free(file.name);
		return err_errno(err, ENOMEM, "keep the list");
	}
	results->files[results->n++] = file;
	return 0;
}

/* The one who walks the workspace may be unable to look into it. */
static void on_folder(struct results *results, const struct agent_message *message)
{
	if ((message->entry.mode & 0500) != 0500 && !results->closed_folder[0])
		snprintf(results->closed_folder, sizeof(results->closed_folder), "%.*s",
			 (int)message->entry.path_len, message->entry.path);
}

/* prefix: what stands before the entry's path below /workspace. */
static int on_entry(struct run *run, const struct agent_message *message, const char *prefix,
		    struct err *err)
{
	struct results *results = &run->results;
	char path[PATH_MAX];
	const char *dir, *name;
	bool literal;

	if (message->entry.type == 'd')
		on_folder(results, message);
	if (message->entry.type == 'd' || message->entry.path_len == 0)
		return 0;
	int len = snprintf(path, sizeof(path), "%s%.*s", prefix, (int)message->entry.path_len,
			   message->entry.path);
	if (len >= (int)sizeof(path) || !find_place(run, path, &dir, &name, &literal))
		return 0;
	if (message->entry.type != 'f') {
		results->n_skipped++;
		return 0;
	}
	if (results->n + results->n_failures >= RESULTS_MAX) {
		results->n_over++;
		return 0;
	}
	const char *odd = literal ? NULL : what_is_odd(name);
	if (!odd)
		return add(results, path, dir, name, err);
	struct err why;
	err_make(&why, ERR_INVALID, "%s", odd);
	results_complain(run, name, &why);
	return 0;
}

/* The agent met more than it sent. */
static void note_entries(struct run *run, uint64_t there, uint64_t seen, uint64_t max)
{
	const struct results *results = &run->results;
	struct err err;

	if (there <= seen)
		return;
	if (seen >= max)
		err_make(&err, ERR_LIMIT,
			 "files of the workspace were not looked at: there are more than %llu",
			 (unsigned long long)max);
	else if (results->closed_folder[0])
		err_make(&err, ERR_SYSTEM,
			 "results in the folder '%s' did not come back: it cannot be read",
			 results->closed_folder);
	else
		err_make(&err, ERR_SYSTEM,
			 "a folder of the workspace cannot be read, so what is in it did not come "
			 "back");
	complain_of_all(run, &err);
}

static uint32_t entries_max(const struct run *run)
{
	uint64_t max = run->job->limits.disk_files;

	return max < AGENT_LIST_ENTRIES_MAX ? (uint32_t)max : AGENT_LIST_ENTRIES_MAX;
}

static int send_list(struct run *run, const char *path, struct err *err)
{
	uint8_t payload[256];
	struct pack pack = { .data = payload, .size = sizeof(payload) };

	pack_text(&pack, path);
	pack_u32(&pack, AGENT_LIST_DEPTH_MAX);
	pack_u32(&pack, entries_max(run));
	int r = link_send_pack(&run->link, AGENT_LIST, CHANNEL_LIST, &pack, err);
	return r < 0 ? r : link_credit(&run->link, CHANNEL_LIST, LINK_WINDOW, err);
}

/* What an entry cost of the credit: its fixed fields and its path. */
static uint32_t entry_cost(const struct agent_message *message)
{
	return (uint32_t)(AGENT_ENTRY_FIELDS + message->entry.path_len);
}

static int list(struct run *run, const char *path, const char *prefix, struct err *err)
{
	uint64_t seen = 0;
	uint32_t spent = 0;
	int r = send_list(run, path, err);

	while (r >= 0) {
		struct agent_message message;
		r = results_wait(run, &message, err);
		if (r < 0 || message.channel != CHANNEL_LIST)
			continue;
		if (message.type == AGENT_DONE) {
			note_entries(run, message.done.bytes, seen, entries_max(run));
			return 0;
		}
		if (message.type == AGENT_FAILED) {
			*err = message.failed;
			return err->errnum == ENOENT ? 0 : -err->errnum;
		}
		if (message.type != AGENT_ENTRY)
			continue;
		if (++seen > entries_max(run))
			return err_make(err, ERR_PROTOCOL, "the agent lists more than it may");
		spent += entry_cost(&message);
		r = on_entry(run, &message, prefix, err);
		if (r >= 0 && spent > LINK_WINDOW / 2) {
			r = link_credit(&run->link, CHANNEL_LIST, spent, err);
			spent = 0;
		}
	}
	return r;
}

/* Ends what still runs, and waits until it is gone. */
static int quiet_sandbox(struct run *run, struct err *err)
{
	int r = link_signal(&run->link, 0, SIGKILL, SCOPE_ALL, err);

	while (r >= 0) {
		struct agent_message message;
		r = clock_mono_ms() < run->results.deadline_ms
			    ? link_wait(&run->link, KILL_MS, &message, err)
			    : err_make(err, ERR_TIMEOUT, "it took too long");
		if (r >= 0 && message.type == AGENT_DONE && message.channel == 0)
			return 0;
	}
	return r;
}

static void warn_of_unmatched(const struct run *run)
{
	const struct job *job = run->job;

	for (size_t i = 0; i < job->n_outs; i++)
		if (!(run->results.matched & 1u << i))
			say_warning("--out '%s' matched no file in /workspace", job->outs[i].glob);
}

static void tell_of_the_rest(struct run *run)
{
	struct results *results = &run->results;
	struct err err;

	if (results->n_complaints > COMPLAINTS_MAX) {
		err_make(&err, ERR_CONFLICT, "%zu more results did not come back",
			 results->n_complaints - COMPLAINTS_MAX);
		say_error(&err);
	}
	if (results->n_over > 0) {
		err_make(&err, ERR_LIMIT,
			 "%zu results did not come back: there are more than %d; pack them into "
			 "one archive",
			 results->n_over, RESULTS_MAX);
		complain_of_all(run, &err);
	}
	if (results->n_skipped > 0)
		say_warning(
			"%zu results were left out: only regular files without a leading dot come "
			"back (name hidden ones with --out)",
			results->n_skipped);
}

void results_collect(struct run *run)
{
	const struct job *job = run->job;
	struct err err;
	bool wants = job->n_outs > 0 || job->workspace == WORKSPACE_OWN;

	if (!run->agent_is_there || !wants)
		return;
	run->results.deadline_ms = clock_mono_ms() + COLLECT_MS +
				   (int64_t)(job->limits.disk_bytes / COLLECT_BYTES_PER_MS);
	int r = quiet_sandbox(run, &err);
	if (r >= 0)
		r = job->n_outs ? list(run, "/workspace", "", &err)
				: list(run, "/workspace/output", OUTPUT, &err);
	for (size_t i = 0; r >= 0 && i < run->results.n; i++)
		r = results_fetch(run, &run->results.files[i], &err);
	if (r < 0) {
		err_while(&err, "bring the results back");
		complain_of_all(run, &err);
		run->agent_is_there = false;
	} else {
		warn_of_unmatched(run);
	}
	tell_of_the_rest(run);
}
