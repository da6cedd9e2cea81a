/* SPDX-License-Identifier: Apache-2.0
 *
 * Host files that the sandbox sees: --in, --workspace, --image; and --out, what comes back. */
#include "base/auto.h"
#include "base/err.h"
#include "base/path.h"
#include "run_job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The absolute path of a directory that exists. */
static int find_dir(const char *flag, const char *given, char ret_path[static PATH_MAX],
		    struct err *err)
{
	struct stat st;

	if (!realpath(given, ret_path) || stat(ret_path, &st) < 0)
		return err_errno(err, errno, "%s: open the directory '%.200s'", flag, given);
	if (!S_ISDIR(st.st_mode))
		return err_make(err, ERR_INVALID,
				"%s '%.200s' is not a directory; give a directory", flag, given);
	return 0;
}

static int read_input(struct job *job, const char *given, struct err *err)
{
	struct job_input *input = &job->inputs[job->n_inputs];
	struct stat st;

	if (!realpath(given, input->path) || stat(input->path, &st) < 0)
		return err_errno(err, errno, "--in: open the file '%.256s'", given);
	if (!S_ISREG(st.st_mode))
		return err_make(err, ERR_INVALID,
				"--in '%.256s' is %s; give regular files, or a directory with "
				"--workspace DIR:ro",
				given, S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
	if (access(input->path, R_OK) < 0)
		return err_errno(err, errno, "--in: read the file '%.256s'", given);
	/* It is called inside as the person called it, also when that was a symlink. */
	const char *slash = strrchr(given, '/');
	input->name = slash ? slash + 1 : given;
	if (!path_is_name(input->name) || input->name[0] == '.')
		return err_make(err, ERR_INVALID,
				"--in '%.256s' does not end in a file name without a leading dot",
				given);
	for (size_t i = 0; i < job->n_inputs; i++)
		if (strcmp(job->inputs[i].name, input->name) == 0)
			return err_make(
				err, ERR_INVALID,
				"two --in files have the name '%.200s'; rename one, they share "
				"/workspace/input",
				input->name);
	job->n_inputs++;
	return 0;
}

static int read_inputs(struct job *job, const struct text_list *given, struct err *err)
{
	if (given->n > JOB_INPUTS_MAX)
		return err_make(
			err, ERR_INVALID,
			"%zu --in files; at most %d can be given, use --workspace DIR:ro for more",
			given->n, JOB_INPUTS_MAX);
	if (given->n == 0)
		return 0;
	job->inputs = calloc(given->n, sizeof(*job->inputs));
	if (!job->inputs)
		return err_errno(err, ENOMEM, "keep the --in files");
	int r = 0;
	for (size_t i = 0; r >= 0 && i < given->n; i++)
		r = read_input(job, given->items[i], err);
	return r;
}

static bool climbs(const char *glob)
{
	for (;;) {
		size_t len = strcspn(glob, "/");
		if (len == 2 && glob[0] == '.' && glob[1] == '.')
			return true;
		if (glob[len] == '\0')
			return false;
		glob += len + 1;
	}
}

/* GLOB or GLOB=DIR; the last '=' parts them. */
static int read_out(struct job *job, const char *given, struct err *err)
{
	struct job_out *out = &job->outs[job->n_outs];

	out->glob = strdup(given);
	if (!out->glob)
		return err_errno(err, ENOMEM, "keep --out");
	job->n_outs++;
	out->dir = ".";
	char *equals = strrchr(out->glob, '=');
	if (equals) {
		*equals = '\0';
		out->dir = equals + 1;
	}
	if (out->glob[0] == '\0' || out->glob[0] == '/' || climbs(out->glob))
		return err_make(
			err, ERR_INVALID,
			"--out '%.200s' is not a pattern below /workspace; give one such as "
			"'*.csv' or 'plots/*.png=DIR'",
			given);
	if (out->dir[0] == '\0')
		return err_make(err, ERR_INVALID, "--out '%.200s' names no directory after '='",
				given);
	return 0;
}

static int read_outs(struct job *job, const struct text_list *given, struct err *err)
{
	if (given->n > JOB_OUTS_MAX)
		return err_make(err, ERR_INVALID, "%zu --out patterns; at most %d can be given",
				given->n, JOB_OUTS_MAX);
	int r = 0;
	for (size_t i = 0; r >= 0 && i < given->n; i++)
		r = read_out(job, given->items[i], err);
	return r;
}

/* none, DIR, DIR:ro, DIR:rw */
static int read_workspace(struct job *job, const char *given, struct err *err)
{
	char dir[PATH_MAX];
	size_t len = given ? strlen(given) : 0;

	if (!given)
		return 0;
	if (strcmp(given, "none") == 0) {
		job->workspace = WORKSPACE_NONE;
		return 0;
	}
	job->workspace = WORKSPACE_DIR;
	job->workspace_writable = true;
	if (len > 3 && given[len - 3] == ':') {
		job->workspace_writable = strcmp(given + len - 2, "rw") == 0;
		if (!job->workspace_writable && strcmp(given + len - 2, "ro") != 0)
			return err_make(err, ERR_INVALID,
					"--workspace '%.200s' ends in neither :ro nor :rw", given);
		len -= 3;
	}
	if (len == 0 || len >= sizeof(dir))
		return err_make(
			err, ERR_INVALID,
			"--workspace '%.200s' names no directory; give none, DIR, DIR:ro or "
			"DIR:rw",
			given);
	memcpy(dir, given, len);
	dir[len] = '\0';
	int r = find_dir("--workspace", dir, job->workspace_dir, err);
	if (r >= 0 && job->workspace_writable && access(job->workspace_dir, W_OK) < 0)
		return err_errno(err, errno, "--workspace: write to '%.200s'; give DIR:ro", dir);
	return r;
}

int job_read_files(struct job *job, const struct run_options *options, struct err *err)
{
	int r = read_workspace(job, options->workspace, err);

	if (r >= 0 && options->image)
		r = find_dir("--image", options->image, job->image, err);
	if (r >= 0)
		r = read_inputs(job, &options->inputs, err);
	if (r >= 0)
		r = read_outs(job, &options->outs, err);
	if (r >= 0 && job->workspace == WORKSPACE_NONE && (job->n_inputs || job->n_outs))
		return err_make(err, ERR_INVALID,
				"--in and --out need a workspace; leave out --workspace none");
	return r;
}
