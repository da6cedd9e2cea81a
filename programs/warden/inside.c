/* SPDX-License-Identifier: Apache-2.0 */
#include "inside.h"

#include "caps.h"
#include "landlock.h"
#include "plan.h"
#include "seccomp.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Where descriptors wait until they get their final numbers. */
#define HIGH_FD 100

static int wait_for_maps(struct inside *inside, struct err *err)
{
	char go;

	if (fd_read_exact(inside->sync_fd, &go, 1) != 1)
		return err_make(err, ERR_SETUP, "the launcher went away");
	/* The kernel's idea of us is unmapped until we become somebody. */
	if (inside->is_root_mapped &&
	    (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0))
		return err_errno(err, errno, "become root of the sandbox");
	return 0;
}

/* The user's groups would still open what is theirs. */
static int become_user(const struct inside *inside, struct err *err)
{
	uid_t id = inside->user;

	if (inside->may_set_groups && syscall(SYS_setgroups, 0, NULL) < 0)
		return err_errno(err, errno, "leave all groups");
	if (syscall(SYS_setresgid, id, id, id) < 0 || syscall(SYS_setresuid, id, id, id) < 0)
		return err_errno(err, errno, "become the sandbox's user");
	return 0;
}

static int keep(int *fd, int number, struct err *err)
{
	int kept = fcntl(*fd, F_DUPFD_CLOEXEC, HIGH_FD + number);

	if (kept < 0)
		return err_errno(err, errno, "keep descriptor %d", *fd);
	*fd = kept;
	return 0;
}

static int place(int fd, int number, struct err *err)
{
	if (dup2(fd, number) < 0)
		return err_errno(err, errno, "place descriptor %d", number);
	return 0;
}

/* First out of the way, then to their places; all others are closed.  Only the agent's bytes and
 * the status pipe stay above, and close on exec. */
static int arrange_descriptors(struct inside *inside, struct err *err)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int *all[] = { &null_fd, &inside->stream_fd, &inside->handover_fd };
	int r = 0;

	if (null_fd < 0)
		return err_errno(err, errno, "open /dev/null");
	for (int i = 0; r == 0 && i < (int)ARRAY_LEN(all); i++)
		r = keep(all[i], i, err);
	for (unsigned i = 0; r == 0 && i < inside->n_tasks; i++)
		r = keep(&inside->tasks_fd[i], 4 + (int)i, err);
	if (r == 0)
		r = keep(&inside->agent_fd, 20, err);
	if (r == 0)
		r = keep(&inside->status_fd, 21, err);
	for (int i = 0; r == 0 && i < 3; i++)
		r = place(null_fd, i, err);
	if (r == 0)
		r = place(inside->stream_fd, AGENT_FD_STREAM, err);
	if (r == 0)
		r = place(inside->handover_fd, AGENT_FD_HANDOVER, err);
	for (unsigned i = 0; r == 0 && i < inside->n_tasks; i++)
		r = place(inside->tasks_fd[i], AGENT_FD_TASKS + (int)i, err);
	if (r < 0)
		return r;
	unsigned low = (unsigned)inside->agent_fd, high = (unsigned)inside->status_fd;
	if (low > high) {
		unsigned t = low;
		low = high;
		high = t;
	}
	if (sys_close_range(AGENT_FD_TASKS + inside->n_tasks, low - 1, 0) < 0 ||
	    (high > low + 1 && sys_close_range(low + 1, high - 1, 0) < 0) ||
	    sys_close_range(high + 1, ~0u, 0) < 0)
		return err_errno(err, errno, "close all other descriptors");
	close(AGENT_FD_NOTIFY);
	return 0;
}

/* From here on only what the filter allows. */
static int filter(const struct inside *inside, struct err *err)
{
	int listener = -1;

	if (inside->without & WITHOUT_SECCOMP)
		return 0;
	int r = seccomp_load(true, &listener, err);
	if (r < 0)
		return r;
	if (listener != AGENT_FD_NOTIFY) {
		r = place(listener, AGENT_FD_NOTIFY, err);
		close(listener);
		return r;
	}
	r = fd_set_cloexec(listener, false);
	return r < 0 ? err_errno(err, -r, "keep the seccomp listener") : 0;
}

static int lock_down(struct inside *inside, struct err *err)
{
	int r = 0;

	if (!(inside->without & WITHOUT_RLIMITS))
		r = rlimits_apply(inside->rlimits, inside->n_rlimits, err);
	if (r < 0)
		return r;
	if (setsid() < 0)
		return err_errno(err, errno, "start a session");
	if (!(inside->without & WITHOUT_CAPS))
		r = caps_lock(err);
	if (r == 0)
		r = become_user(inside, err);
	if (r == 0 && !(inside->without & WITHOUT_CAPS))
		r = caps_drop(err);
	if (r == 0)
		r = caps_no_new_privs(err);
	if (r == 0 && inside->landlock_abi && !(inside->without & WITHOUT_LANDLOCK))
		r = landlock_restrict(inside->landlock_abi, err);
	if (r == 0)
		r = arrange_descriptors(inside, err);
	return r < 0 ? r : filter(inside, err);
}

static int build(struct inside *inside, struct err *err)
{
	int r = wait_for_maps(inside, err);

	if (r < 0)
		return r;
	if (unshare(CLONE_NEWCGROUP) < 0)
		return err_errno(err, errno, "make a cgroup namespace");
	if (syscall(SYS_sethostname, "cay", 3) < 0)
		return err_errno(err, errno, "set the host name");
	r = jailroot_enter(&inside->root, err);
	return r < 0 ? r : lock_down(inside, err);
}

_Noreturn void inside_main(struct inside *inside)
{
	char count[8], files[16];
	char *argv[] = { "agent", count, files, NULL };
	char *envp[] = { NULL };
	struct err err = { 0 };

	snprintf(count, sizeof(count), "%u", inside->n_tasks);
	snprintf(files, sizeof(files), "%u", inside->root.limits->open_files);
	int r = build(inside, &err);
	if (r == 0) {
		sys_execveat(inside->agent_fd, "", argv, envp, AT_EMPTY_PATH);
		err_errno(&err, errno, "start the agent");
	}
	(void)fd_write_all(inside->status_fd, &err, sizeof(err));
	_exit(125);
}
