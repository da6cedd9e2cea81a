/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment inside: PATH, HOME, LANG, TERM, TZ, USER, what the runtime needs and what was
 * asked for.  Nothing of ours gets in by itself. */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "run_job.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define ENV_FILE_MAX (1u << 20)
#define ENV_VARIABLES_MAX 4096
#define SAFE_PATH "/usr/local/bin:/usr/bin:/bin"

static bool is_name(const char *text, size_t len)
{
	if (len == 0 || isdigit((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return true;
}

/* Puts KEY=VALUE in, in the place of an earlier KEY. */
static int put(struct job *job, const char *pair, struct err *err)
{
	size_t key = strcspn(pair, "=") + 1, at = 0;

	while (at < job->n_env && strncmp(job->env[at], pair, key) != 0)
		at++;
	if (at >= ENV_VARIABLES_MAX)
		return err_make(err, ERR_INVALID, "more than %d variables", ENV_VARIABLES_MAX);
	if (at == job->n_env) {
		char **grown = reallocarray(job->env, job->n_env + 2, sizeof(*grown));
		if (!grown)
			return err_errno(err, ENOMEM, "keep a variable");
		job->env = grown;
		job->env[job->n_env++] = NULL;
		job->env[job->n_env] = NULL;
	}
	char *copy = strdup(pair);
	if (!copy)
		return err_errno(err, ENOMEM, "keep a variable");
	free(job->env[at]);
	job->env[at] = copy;
	return 0;
}

static int put_pair(struct job *job, const char *key, const char *value, struct err *err)
{
	auto_free char *pair = NULL;

	if (asprintf(&pair, "%s=%s", key, value) < 0) {
		pair = NULL;
		return err_errno(err, ENOMEM, "keep a variable");
	}
	return put(job, pair, err);
}

/* A short word of harmless characters, as names of terminals and time zones are. */
static bool is_harmless(const char *value)
{
	size_t len = value ? strlen(value) : 0;

	return len > 0 && len < 64 && value[0] != '/' && value[0] != ':' && !strstr(value, "..") &&
	       strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			     "+-_/.,:") == len;
}

static int put_own(struct job *job, struct err *err)
{
	const char *term = getenv("TERM"), *zone = getenv("TZ");
	const char *bin = job->plan ? job->plan->bin : "";
	char path[PATH_MAX + sizeof(SAFE_PATH) + 1];

	snprintf(path, sizeof(path), "%s%s" SAFE_PATH, bin, *bin ? ":" : "");
	int r = put_pair(job, "PATH", path, err);
	if (r >= 0)
		r = put_pair(job, "HOME", job->workspace == WORKSPACE_NONE ? "/tmp" : "/workspace",
			     err);
	if (r >= 0)
		r = put_pair(job, "LANG", "C.UTF-8", err);
	if (r >= 0)
		r = put_pair(job, "TERM", is_harmless(term) ? term : "dumb", err);
	if (r >= 0)
		r = put_pair(job, "TZ", is_harmless(zone) ? zone : "UTC", err);
	return r < 0 ? r : put_pair(job, "USER", "user", err);
}

static int put_given(struct job *job, const char *given, const char *where, struct err *err)
{
	size_t key = strcspn(given, "=");

	if (!is_name(given, key))
		return err_make(err, ERR_INVALID,
				"%s '%.*s' is not the name of a variable; give KEY=VALUE", where,
				(int)(key < 64 ? key : 64), given);
	if (given[key] == '=')
		return put(job, given, err);
	const char *ours = getenv(given);
	if (!ours)
		return err_make(err, ERR_INVALID,
				"%s '%.64s': there is no such variable to pass on; give KEY=VALUE",
				where, given);
	return put_pair(job, given, ours, err);
}

static int put_file(struct job *job, const char *path, struct err *err)
{
	auto_free char *text = malloc(ENV_FILE_MAX);
	char where[320];
	unsigned number = 0;

	if (!text)
		return err_errno(err, ENOMEM, "read '%.200s'", path);
	ssize_t n = fd_read_text_at(AT_FDCWD, path, text, ENV_FILE_MAX);
	if (n == -EFBIG)
		return err_make(err, ERR_INVALID, "--env-file '%.200s' is larger than 1 MiB", path);
	if (n < 0)
		return err_errno(err, (int)-n, "--env-file: read '%.200s'", path);
	if (memchr(text, 0, (size_t)n))
		return err_make(err, ERR_INVALID,
				"--env-file '%.200s' is not text; give lines of KEY=VALUE", path);
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		number++;
		line[strcspn(line, "\r")] = '\0';
		line += strspn(line, " \t");
		if (*line == '#' || *line == '\0')
			continue;
		snprintf(where, sizeof(where), "--env-file '%.200s', line %u:", path, number);
		int r = put_given(job, line, where, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int job_make_env(struct job *job, const struct run_options *options, struct err *err)
{
	int r = put_own(job, err);

	for (size_t i = 0; r >= 0 && job->plan && job->plan->env[i]; i++)
		r = put(job, job->plan->env[i], err);
	for (size_t i = 0; r >= 0 && i < options->env_files.n; i++)
		r = put_file(job, options->env_files.items[i], err);
	for (size_t i = 0; r >= 0 && i < options->env.n; i++)
		r = put_given(job, options->env.items[i], "-e", err);
	size_t bytes = 0;
	for (size_t i = 0; r >= 0 && i < job->n_env; i++)
		bytes += strlen(job->env[i]) + 1;
	if (r >= 0 && bytes > JOB_ARGV_MAX / 2)
		return err_make(err, ERR_INVALID, "the environment is larger than 512 KiB");
	return r;
}
