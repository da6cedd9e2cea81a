/* SPDX-License-Identifier: Apache-2.0 */
#include "results_fetch.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/quantity.h"
#include "deliver.h"
#include "run.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHANNEL_READ 62

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
	bool is_cancelled; /* nothing more of it is wanted; the agent was told */
	uint64_t size;     /* what the agent said */
	uint32_t spent;
};

/* Gives this file up, not the others: the agent's last word on the channel is waited for. */
static int give_up(struct transfer *t, struct err *err)
{
	t->is_broken = t->is_cancelled = true;
	return link_send(&t->run->link, AGENT_CANCEL, CHANNEL_READ, NULL, 0, err);
}

static int on_file(struct transfer *t, const struct agent_message *message, struct err *err)
{
	uint64_t most = t->run->job->limits.disk_bytes;
	char size[QUANTITY_TEXT], limit[QUANTITY_TEXT];

	t->file->mode = message->file.mode;
	t->size = message->file.size;
	if (t->size <= most || t->is_cancelled)
		return 0;
	err_make(&t->broken, ERR_LIMIT, "it has %s, more than the workspace's limit of %s",
		 quantity_show_size(size, t->size), quantity_show_size(limit, most));
	return give_up(t, err);
}

/* Writes what came, as far as the allowance of all results goes. */
static int keep(struct transfer *t, const uint8_t *data, size_t len, struct err *err)
{
	struct results *results = &t->run->results;

	int r = deliver_write(&t->delivery, data, len, &t->broken);
	if (r < 0) {
		t->is_broken = true;
		return 0;
	}
	t->file->real_bytes += (uint64_t)r;
	if (t->file->real_bytes <= t->run->job->limits.disk_bytes - results->total_bytes)
		return 0;
	err_make(&t->broken, ERR_LIMIT, "with it the results are larger than the workspace may be");
	return give_up(t, err);
}

static int on_data(struct transfer *t, const struct agent_message *message, struct err *err)
{
	size_t len = message->data.len;
	int r = 0;

	if (t->is_cancelled)
		return 0;
	t->file->bytes += len;
	if (t->file->bytes > t->size) {
		err_make(&t->broken, ERR_CONFLICT, "it grew while it was read");
		return give_up(t, err);
	}
	digest_update(&t->digest, message->data.data, len);
	if (!t->is_broken)
		r = keep(t, message->data.data, len, err);
	t->spent += (uint32_t)len;
	if (r < 0 || t->is_cancelled || t->spent <= LINK_WINDOW / 2)
		return r;
	uint32_t back = t->spent;
	t->spent = 0;
	return link_credit(&t->run->link, CHANNEL_READ, back, err);
}

/* Reads one file to its end; t->is_broken says whether it came.  -errno: the sandbox cannot be
 * spoken to. */
static int transfer(struct transfer *t, struct err *err)
{
	int r = send_read(t->run, t->file->inside, err);

	while (r >= 0) {
		struct agent_message message;
		r = results_wait(t->run, &message, err);
		if (r < 0 || message.channel != CHANNEL_READ)
			continue;
		if (message.type == AGENT_FILE)
			r = on_file(t, &message, err);
		else if (message.type == AGENT_DATA)
			r = on_data(t, &message, err);
		else if (message.type == AGENT_DONE)
			return 0;
		else if (message.type == AGENT_FAILED) {
			if (!t->is_broken)
				t->broken = message.failed;
			t->is_broken = true;
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
	char size[QUANTITY_TEXT];
	bool here = strcmp(file->dir, ".") == 0;

	if (run->options->json || (!run->options->verbose && !isatty(STDERR_FILENO)))
		return;
	say("wrote '%s%s%.256s' (%s)", here ? "" : file->dir, here ? "" : "/", file->name,
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

static void begin(struct transfer *t, int dir)
{
	struct result_file *file = t->file;

	digest_init(&t->digest);
	if (dir < 0)
		t->is_broken = err_errno(&t->broken, -dir, "open the folder '%s'", file->dir) < 0;
	else
		t->is_broken = deliver_begin(&t->delivery, dir, file->name, t->run->options->force,
					     &t->broken) < 0;
}

int results_fetch(struct run *run, struct result_file *file, struct err *err)
{
	struct transfer t = { .run = run, .file = file, .delivery = { .parent = -1, .fd = -1 } };
	auto_close int dir = open_dir(file->dir);
	char sha256[DIGEST_HEX_SIZE];

	begin(&t, dir);
	int r = transfer(&t, err);
	if (r >= 0) {
		digest_final(&t.digest, sha256);
		if (!t.is_broken)
			t.is_broken =
				deliver_commit(&t.delivery, file->mode, sha256, &t.broken) < 0;
		if (t.is_broken) {
			explain_folder(file, &t.broken);
			results_complain(run, file->name, &t.broken);
		} else {
			memcpy(file->sha256, sha256, sizeof(sha256));
			run->results.total_bytes += file->real_bytes;
			tell(run, file);
		}
	}
	deliver_finish(&t.delivery);
	return r;
}
