/* SPDX-License-Identifier: Apache-2.0 */
#include "exec.h"

#include "pty.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define REPORT_FD 3

struct ends {
	int ours, theirs;
};

/* Every descriptor of a process before it has an owner. */
struct plan {
	struct ends in, out, err, report;
	bool is_pty;
};

static void finish_ends(struct ends *ends)
{
	drop_fd(&ends->ours);
	drop_fd(&ends->theirs);
}

static void finish_plan(struct plan *plan)
{
	finish_ends(&plan->in);
	finish_ends(&plan->out);
	finish_ends(&plan->err);
	finish_ends(&plan->report);
}

/* Only our end is non-blocking: each end has its own flags. */
static int make_pipe(struct ends *ret_ends, bool they_read)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	ret_ends->ours = fds[they_read ? 1 : 0];
	ret_ends->theirs = fds[they_read ? 0 : 1];
	return fd_set_nonblocking(ret_ends->ours, true);
}

static int make_null(struct ends *ret_ends)
{
	ret_ends->theirs = open("/dev/null", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return ret_ends->theirs < 0 ? -errno : 0;
}

static int make_terminal(struct plan *plan, const struct request *request)
{
	int r = pty_open(request->exec.rows, request->exec.columns, &plan->out.ours,
			 &plan->out.theirs);

	if (r < 0)
		return r;
	plan->is_pty = true;
	plan->in.ours = fcntl(plan->out.ours, F_DUPFD_CLOEXEC, 3);
	return plan->in.ours < 0 ? -errno : 0;
}

static int make_plan(struct plan *plan, const struct request *request)
{
	uint32_t flags = request->exec.flags;
	int r = make_pipe(&plan->report, false);

	if (r == 0 && (flags & EXEC_PTY))
		return make_terminal(plan, request);
	if (r == 0)
		r = flags & EXEC_STDIN ? make_pipe(&plan->in, true) : make_null(&plan->in);
	if (r == 0)
		r = make_pipe(&plan->out, false);
	if (r == 0 && !(flags & EXEC_MERGED))
		r = make_pipe(&plan->err, false);
	return r;
}

/* From here to execve(): the new process.  It reports one struct err and ends, or says nothing. */

__attribute__((noreturn, format(printf, 4, 5))) static void fail(int report, enum err_kind kind,
								 int errnum, const char *fmt, ...)
{
	struct err err;
	char what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	err_errno(&err, errnum, "%s", what);
	err.kind = kind;
	(void)fd_write_all(report, &err, sizeof(err)); /* nobody else to tell */
	_exit(127);
}

/* Writing 0 moves the writer itself: the one way that needs no wait for the rest of the kernel. */
static void join_cgroups(const struct sandbox *sandbox, int report)
{
	for (unsigned i = 0; i < sandbox->n_tasks; i++)
		if (write(sandbox->tasks[i], "0", 1) != 1)
			fail(report, ERR_SETUP, errno, "enter the cgroup of the code");
}

static void reset_signals(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int i = 1; i <= 64; i++)
		(void)sigaction(i, &action, NULL); /* some cannot be changed, by anyone */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void place_descriptors(struct plan *plan)
{
	int out = plan->out.theirs;
	int in = plan->is_pty ? out : plan->in.theirs;
	int err = plan->err.theirs >= 0 ? plan->err.theirs : out;

	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 ||
	    (plan->report.theirs != REPORT_FD &&
	     dup3(plan->report.theirs, REPORT_FD, O_CLOEXEC) < 0))
		fail(plan->report.theirs, ERR_SETUP, errno, "set up standard streams");
	/* All the others are CLOEXEC; this is for a program that would look before exec. */
	(void)sys_close_range(REPORT_FD + 1, UINT_MAX, 0);
}

/* The agent itself has more, so that no program can leave it without. */
static void limit_files(uint32_t most)
{
	struct rlimit limit;

	if (most == 0)
		return;
	/* The host may allow less than was asked for. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max > most)
		limit.rlim_max = most;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		fail(REPORT_FD, ERR_SETUP, errno, "limit open files");
}

static void enter_directory(const char *cwd)
{
	char seen[PATH_MAX];

	if (chdir(cwd) < 0)
		fail(REPORT_FD, ERR_INVALID, errno, "enter the working directory '%s'", cwd);
	/* "(unreachable)" would be a directory outside of our root. */
	if (!getcwd(seen, sizeof(seen)) || seen[0] != '/')
		fail(REPORT_FD, ERR_SETUP, ENOENT, "the working directory is not in the sandbox");
}

static const char *search_path(char *const *envp)
{
	for (; *envp; envp++)
		if (strncmp(*envp, "PATH=", 5) == 0)
			return *envp + 5;
	return DEFAULT_PATH;
}

/* Returns only when it failed: an errno.  ESRCH: the file is there, its interpreter is not. */
static int try_file(const char *file, const struct request *request)
{
	execve(file, request->exec.argv, request->exec.envp);
	if (errno == ENOENT && access(file, F_OK) == 0)
		return ESRCH;
	return errno;
}

static int try_path(const char *name, const struct request *request)
{
	char file[PATH_MAX];
	int found = ENOENT;

	for (const char *at = search_path(request->exec.envp);; at++) {
		size_t len = strcspn(at, ":");
		int n = snprintf(file, sizeof(file), "%.*s%s%s", (int)len, at, len ? "/" : "",
				 name);
		if (n > 0 && (size_t)n < sizeof(file)) {
			int e = try_file(file, request);
			if (e == EACCES)
				found = EACCES;
			else if (e != ENOENT && e != ENOTDIR)
				return e;
		}
		at += len;
		if (*at == '\0')
			return found;
	}
}

__attribute__((noreturn)) static void become(const struct sandbox *sandbox, struct plan *plan,
					     const struct request *request)
{
	const char *name = request->exec.argv[0];

	join_cgroups(sandbox, plan->report.theirs);
	setsid();
	reset_signals();
	if (plan->is_pty && pty_control(plan->out.theirs) < 0)
		fail(plan->report.theirs, ERR_SETUP, errno, "take the terminal");
	place_descriptors(plan);
	limit_files(sandbox->open_files);
	enter_directory(request->exec.cwd);

	int e = strchr(name, '/') ? try_file(name, request) : try_path(name, request);
	if (e == ESRCH)
		fail(REPORT_FD, ERR_NOT_FOUND, ENOENT, "start '%s': its interpreter", name);
	if (e == ENOENT || e == ENOTDIR)
		fail(REPORT_FD, ERR_NOT_FOUND, ENOENT, "start '%s'", name);
	fail(REPORT_FD, ERR_SYSTEM, e, "start '%s'", name);
}

static void take_over(struct channel *channel, struct plan *plan, pid_t pid)
{
	channel->kind = CHANNEL_PROCESS;
	channel->process = (struct process){
		.pid = pid,
		.report = take_fd(&plan->report.ours),
		.stdin_fd = take_fd(&plan->in.ours),
		.sources = {
			{ take_fd(&plan->out.ours), AGENT_STDOUT, READY_STDOUT, 0 },
			{ take_fd(&plan->err.ours), AGENT_STDERR, READY_STDERR, 0 },
		},
		.is_pty = plan->is_pty,
	};
}

int exec_start(struct sandbox *sandbox, struct channel *channel, const struct request *request,
	       struct err *err)
{
	AUTO(finish_plan)
	struct plan plan = { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, false };

	int r = make_plan(&plan, request);
	if (r < 0) {
		(void)err_errno(err, -r, "make pipes for '%.64s'", request->exec.argv[0]);
		err->kind = ERR_SETUP;
		return r;
	}
	pid_t pid = fork();
	if (pid == 0)
		become(sandbox, &plan, request);
	if (pid < 0) {
		(void)err_errno(err, errno, "start '%.64s'", request->exec.argv[0]);
		err->kind = err->errnum == EAGAIN ? ERR_LIMIT : ERR_SETUP;
		return -err->errnum;
	}
	take_over(channel, &plan, pid);
	return 0;
}
