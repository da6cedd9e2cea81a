/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the code comes from: a file, stdin, -c, or nowhere (a program and its arguments). */
#include "base/auto.h"
#include "base/err.h"
#include "run_job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse_size(struct err *err, const char *what)
{
	return err_make(
		err, ERR_INVALID,
		"%s is larger than 16 MiB; give data with --in FILE and keep the code small", what);
}

static int keep_code(struct job *job, const void *code, size_t len, struct err *err)
{
	job->code = malloc(len + 1);
	if (!job->code)
		return err_errno(err, ENOMEM, "keep the code");
	memcpy(job->code, code, len);
	job->code[len] = '\0';
	job->code_len = len;
	digest_of(job->code, len, job->code_sha256);
	return 0;
}

/* Reads to the end, whatever kind of file it is, but never more than is allowed. */
static int read_all(struct job *job, int fd, const char *what, size_t guess, struct err *err)
{
	size_t size = guess < 4096 ? 4096 : guess + 1, len = 0;
	auto_free uint8_t *data = malloc(size);

	for (;;) {
		if (!data)
			return err_errno(err, ENOMEM, "read %s", what);
		ssize_t n = read(fd, data + len, size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "read %s", what);
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > JOB_CODE_MAX)
			return refuse_size(err, what);
		if (len == size) {
			size *= 2;
			uint8_t *grown = realloc(data, size);
			if (!grown)
				return err_errno(err, ENOMEM, "read %s", what);
			data = grown;
		}
	}
	digest_of(data, len, job->code_sha256);
	job->code = take_ptr(&data);
	job->code_len = len;
	return 0;
}

/* A script inside --workspace DIR is run where it lies, so that it finds its neighbours. */
static void find_in_place(struct job *job, const char *path)
{
	char real[PATH_MAX];
	size_t len = strlen(job->workspace_dir);

	if (job->workspace != WORKSPACE_DIR || !realpath(path, real))
		return;
	if (strncmp(real, job->workspace_dir, len) != 0 || real[len] != '/')
		return;
	static const char inside[] = "/workspace";
	size_t rest = strlen(real + len);
	if (sizeof(inside) + rest > sizeof(job->in_place))
		return;
	memcpy(job->in_place, inside, sizeof(inside) - 1);
	memcpy(job->in_place + sizeof(inside) - 1, real + len, rest + 1);
}

static int read_file(struct job *job, const char *path, struct err *err)
{
	char what[320];
	struct stat st;

	snprintf(what, sizeof(what), "the file '%.256s'", path);
	/* O_NONBLOCK: a FIFO must not make us wait before it is looked at. */
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return err_make(
			err, ERR_NOT_FOUND,
			"the file '%.256s' does not exist; give a script, `-c CODE`, or `-- "
			"PROGRAM`",
			path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open %s", what);
	if (S_ISDIR(st.st_mode))
		return err_make(
			err, ERR_INVALID,
			"'%.256s' is a directory; give a file in it, and --workspace DIR to "
			"show the directory",
			path);
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return err_make(err, ERR_INVALID, "'%.256s' is not a regular file", path);
	if (st.st_size > JOB_CODE_MAX)
		return refuse_size(err, what);
	(void)fcntl(fd, F_SETFL, O_RDONLY);
	const char *slash = strrchr(path, '/');
	job->code_name = slash ? slash + 1 : path;
	find_in_place(job, path);
	return read_all(job, fd, what, (size_t)st.st_size, err);
}

static int read_argv(struct job *job, const struct operands *operands, struct err *err)
{
	if (operands->n == 0)
		return err_make(err, ERR_INVALID,
				"nothing to run; give a FILE, `-`, `-c CODE`, or `-- "
				"PROGRAM`");
	if (operands->items[0][0] == '\0')
		return err_make(err, ERR_INVALID, "the name of the program is empty");
	job->args = operands->items;
	job->n_args = operands->n;
	return 0;
}

int job_read_code(struct job *job, const struct run_options *options,
		  const struct operands *operands, struct err *err)
{
	if (options->code) {
		job->args = operands->items;
		job->n_args = operands->n;
		size_t len = strlen(options->code);
		if (len > JOB_CODE_MAX)
			return refuse_size(err, "the code");
		return keep_code(job, options->code, len, err);
	}
	if (operands->n_before_dashes == 0)
		return read_argv(job, operands, err);
	job->args = operands->items + 1;
	job->n_args = operands->n - 1;
	if (strcmp(operands->items[0], "-") != 0)
		return read_file(job, operands->items[0], err);
	job->code_from_stdin = true;
	return read_all(job, STDIN_FILENO, "the code on stdin", 0, err);
}
