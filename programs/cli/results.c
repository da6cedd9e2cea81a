/* SPDX-License-Identifier: Apache-2.0 */
#include "results.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/quantity.h"
#include "deliver.h"
#include "run.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define RESULTS_MAX 10000
#define ANSWER_MS 10000
#define KILL_MS 1000
#define CHANNEL_LIST 61
#define CHANNEL_READ 62
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

static void complain(struct run *run, const char *name, const struct err *why)
{
	struct err err;
	char shown[128];

	say_escape(shown, sizeof(shown), name, strlen(name));
	err_make(&err, ERR_CONFLICT, "the result '%s' did not come back: %.400s", shown, why->text);
	say_error(&err);
	remember_failure(&run->results, name, why->text);
	run->results.failed = true;
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

/* Where a file of the workspace goes, or false when nobody asked for it. */
static bool find_place(struct run *run, const char *path, const char **ret_dir,
		       const char **ret_name)
{
	const struct job *job = run->job;

	for (size_t i = 0; i < job->n_outs; i++) {
		if (fnmatch(job->outs[i].glob, path, FNM_PATHNAME | FNM_PERIOD) != 0)
			continue;
		run->results.matched |= 1u << i;
		*ret_dir = job->outs[i].dir;
		*ret_name = below_fixed_part(path, job->outs[i].glob);
		return true;
	}
	if (job->workspace != WORKSPACE_OWN || strncmp(path, OUTPUT, strlen(OUTPUT)) != 0)
		return false;
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
	if (results->n == RESULTS_MAX)
		return err_make(err, ERR_LIMIT, "more than %d files; pack them into one archive",
				RESULTS_MAX);
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

/* prefix: what stands before the entry's path below /workspace. */
static int on_entry(struct run *run, const struct agent_message *message, const char *prefix,
		    struct err *err)
{
	char path[PATH_MAX];
	const char *dir, *name;

	if (message->entry.type == 'd' || message->entry.path_len == 0)
		return 0;
	int len = snprintf(path, sizeof(path), "%s%.*s", prefix, (int)message->entry.path_len,
			   message->entry.path);
	if (len >= (int)sizeof(path) || !find_place(run, path, &dir, &name))
		return 0;
	if (message->entry.type != 'f') {
		run->results.n_skipped++;
		return 0;
	}
	return add(&run->results, path, dir, name, err);
}

static void note_entries(struct run *run, uint64_t there, uint64_t seen)
{
	struct err err;

	if (there <= seen)
		return;
	err_make(&err, ERR_LIMIT,
		 "%llu files of the workspace were not looked at: there are too many",
		 (unsigned long long)(there - seen));
	say_error(&err);
	remember_failure(&run->results, "", err.text);
	run->results.failed = true;
}

static int send_list(struct run *run, const char *path, struct err *err)
{
	uint8_t payload[256];
	struct pack pack = { .data = payload, .size = sizeof(payload) };
	uint64_t max = run->job->limits.disk_files;

	pack_text(&pack, path);
	pack_u32(&pack, AGENT_LIST_DEPTH_MAX);
	pack_u32(&pack, max < AGENT_LIST_ENTRIES_MAX ? (uint32_t)max : AGENT_LIST_ENTRIES_MAX);
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
		r = link_wait(&run->link, ANSWER_MS, &message, err);
		if (r < 0 || message.channel != CHANNEL_LIST)
			continue;
		if (message.type == AGENT_DONE) {
			note_entries(run, message.done.bytes, seen);
			return 0;
		}
		if (message.type == AGENT_FAILED) {
			*err = message.failed;
			return err->errnum == ENOENT ? 0 : -err->errnum;
		}
		if (message.type != AGENT_ENTRY)
			continue;
		seen++;
		spent += entry_cost(&message);
		r = on_entry(run, &message, prefix, err);
		if (r >= 0 && spent > LINK_WINDOW / 2) {
			r = link_credit(&run->link, CHANNEL_LIST, spent, err);
			spent = 0;
		}
	}
	return r;
}

static int send_read(struct run *run, const char *inside, struct err *err)
{
	uint8_t payload[AGENT_PATH_MAX + 32];
	char path[PATH_MAX + 16];
	struct pack pack = { .data = payload, .size = sizeof(payload) };

	snprintf(path, sizeof(path), "/workspace/%s", inside);
	pack_text(&pack, path);
	pack_u64(&pack, 0);
	pack_u64(&pack, 0);
	int r = link_send_pack(&run->link, AGENT_READ, CHANNEL_READ, &pack, err);
	return r < 0 ? r : link_credit(&run->link, CHANNEL_READ, LINK_WINDOW, err);
}

struct transfer {
	struct run *run;
	struct result_file *file;
	struct delivery delivery;
	struct digest digest;
	struct err broken; /* why nothing more is written; the rest is read and dropped */
	bool is_broken;
	uint32_t spent;
};

static int on_data(struct transfer *t, const struct agent_message *message, struct err *err)
{
	size_t len = message->data.len;

	t->file->bytes += len;
	t->run->results.total_bytes += len;
	if (t->run->results.total_bytes > t->run->job->limits.disk_bytes)
		return err_make(err, ERR_LIMIT, "the results are larger than the workspace may be");
	digest_update(&t->digest, message->data.data, len);
	if (!t->is_broken)
		t->is_broken = deliver_write(&t->delivery, message->data.data, len, &t->broken) < 0;
	t->spent += (uint32_t)len;
	if (t->spent <= LINK_WINDOW / 2)
		return 0;
	uint32_t back = t->spent;
	t->spent = 0;
	return link_credit(&t->run->link, CHANNEL_READ, back, err);
}

/* Reads one file to its end.  1: it came whole, 0: it did not and was complained about, -errno:
 * the sandbox cannot be spoken to. */
static int transfer(struct transfer *t, struct err *err)
{
	int r = send_read(t->run, t->file->inside, err);

	while (r >= 0) {
		struct agent_message message;
		r = link_wait(&t->run->link, ANSWER_MS, &message, err);
		if (r < 0 || message.channel != CHANNEL_READ)
			continue;
		if (message.type == AGENT_FILE)
			t->file->mode = message.file.mode;
		else if (message.type == AGENT_DATA)
			r = on_data(t, &message, err);
		else if (message.type == AGENT_DONE)
			return 1;
		else if (message.type == AGENT_FAILED) {
			complain(t->run, t->file->name, &message.failed);
			return 0;
		}
	}
	return r;
}

static int open_dir(const char *path)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT || len >= sizeof(part))
		return fd < 0 ? -errno : fd;
	memcpy(part, path, len + 1);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(part, 0777);
		*slash = '/';
	}
	(void)mkdir(part, 0777);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void tell(const struct run *run, const struct result_file *file)
{
	char shown[256], size[QUANTITY_TEXT];
	bool here = strcmp(file->dir, ".") == 0;

	if (run->options->json || (!run->options->verbose && !isatty(STDERR_FILENO)))
		return;
	say_escape(shown, sizeof(shown), file->name, strlen(file->name));
	say("wrote '%s%s%s' (%s)", here ? "" : file->dir, here ? "" : "/", shown,
	    quantity_show_size(size, file->bytes));
}

/* A folder that may not be written to has a way out. */
static void explain_folder(const struct result_file *file, struct err *err)
{
	struct err why = *err;
	char folder[PATH_MAX];

	if (err->kind != ERR_SYSTEM)
		return;
	if (err->errnum != EACCES && err->errnum != EROFS && err->errnum != EPERM)
		return;
	if (!realpath(file->dir, folder))
		snprintf(folder, sizeof(folder), "%s", file->dir);
	err_make(err, why.kind,
		 "the folder '%.200s' is not writable (%s); `--out 'output/*=DIR'` puts results "
		 "elsewhere",
		 folder, strerrordesc_np(why.errnum));
}

static int fetch(struct run *run, struct result_file *file, struct err *err)
{
	struct transfer t = { .run = run, .file = file, .delivery = { .parent = -1, .fd = -1 } };
	auto_close int dir = open_dir(file->dir);
	char sha256[DIGEST_HEX_SIZE];

	digest_init(&t.digest);
	if (dir < 0)
		t.is_broken = err_errno(&t.broken, -dir, "open the folder '%s'", file->dir) < 0;
	else
		t.is_broken = deliver_begin(&t.delivery, dir, file->name, run->options->force,
					    &t.broken) < 0;
	int r = transfer(&t, err);
	if (r > 0) {
		digest_final(&t.digest, sha256);
		if (!t.is_broken)
			t.is_broken =
				deliver_commit(&t.delivery, file->mode, sha256, &t.broken) < 0;
		if (t.is_broken) {
			explain_folder(file, &t.broken);
			complain(run, file->name, &t.broken);
		} else {
			memcpy(file->sha256, sha256, sizeof(sha256));
			tell(run, file);
		}
	}
	deliver_finish(&t.delivery);
	return r < 0 ? r : 0;
}

/* Ends what still runs, and waits until it is gone. */
static int quiet_sandbox(struct run *run, struct err *err)
{
	int r = link_signal(&run->link, 0, SIGKILL, SCOPE_ALL, err);

	while (r >= 0) {
		struct agent_message message;
		r = link_wait(&run->link, KILL_MS, &message, err);
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

void results_collect(struct run *run)
{
	const struct job *job = run->job;
	struct err err;
	bool wants = job->n_outs > 0 || job->workspace == WORKSPACE_OWN;

	if (!run->agent_is_there || !wants)
		return;
	int r = quiet_sandbox(run, &err);
	if (r >= 0)
		r = job->n_outs ? list(run, "/workspace", "", &err)
				: list(run, "/workspace/output", OUTPUT, &err);
	for (size_t i = 0; r >= 0 && i < run->results.n; i++)
		r = fetch(run, &run->results.files[i], &err);
	if (r < 0) {
		err_while(&err, "bring the results back");
		say_error(&err);
		remember_failure(&run->results, "", err.text);
		run->results.failed = true;
		run->agent_is_there = false;
	} else {
		warn_of_unmatched(run);
	}
	if (run->results.n_skipped > 0)
		say_warning(
			"%zu results were left out: only regular files without a leading dot come "
			"back (name hidden ones with --out)",
			run->results.n_skipped);
}
