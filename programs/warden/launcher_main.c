/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher_main.c - the launcher itself, in U. */
#include "launcher.h"

#include "agent_bytes.h"
#include "inside.h"
#include "landlock.h"
#include "layers.h"
#include "outer.h"
#include "verify.h"
#include "watch.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"

#include <errno.h>
#include <linux/memfd.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define AGENT_START_MS 10000

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u
#endif

struct jail {
	pid_t pid; /* 0: the slot is free */
	struct tree_usage tree;
	int workspace_fd; /* counted by us; -1: has a quota of its own */
	int64_t count_after_ms;
};

struct self {
	int sock, signal_fd, proc_fd, agent_fd;
	const struct ids *ids;
	int abi;
	char first_net[64]; /* the network namespace we came from */
	bool has_network;   /* we are in a fresh one that waits for its sandbox */
	struct layers layers;
	struct jail jails[LAUNCHER_SLOTS];
	struct plan plan; /* the one at hand */
	int fds[FD_PASS_MAX];
	size_t n_fds;
};

/* The agent runs from a sealed memory file that nobody may read: so its process cannot be
 * looked into by the code beside it. */
static int make_agent(struct err *err)
{
	auto_close int fd = sys_memfd_create("agent", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	if (fd < 0) /* before Linux 6.3 there was no such flag */
		fd = sys_memfd_create("agent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_errno(err, errno, "make a memory file for the agent");
	int r = fd_write_all(fd, agent_bytes, (size_t)(agent_bytes_end - agent_bytes));
	if (r < 0)
		return err_errno(err, -r, "write the agent");
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* Running it needs a descriptor that cannot write. */
	auto_close int ro = open(path, O_RDONLY | O_CLOEXEC);
	if (ro < 0 || fchmod(fd, 0111) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_errno(err, errno, "seal the agent");
	return take_fd(&ro);
}

static void plan_inside(const struct self *self, struct inside *inside)
{
	const struct plan *plan = &self->plan;
	bool has_userns = !(plan->without & WITHOUT_USERNS);

	inside->is_root_mapped = self->ids->mode != IDS_SINGLE || !has_userns;
	inside->may_set_groups = self->ids->mode != IDS_SINGLE;
	inside->without = plan->without;
	inside->landlock_abi = self->abi;
	inside->stream_fd = self->fds[PLAN_FD_STREAM];
	inside->handover_fd = self->fds[PLAN_FD_HANDOVER];
	inside->agent_fd = self->agent_fd;
	inside->n_tasks = plan->n_tasks;
	for (unsigned i = 0; i < plan->n_tasks; i++)
		inside->tasks_fd[i] = self->fds[PLAN_FD_FIRST + i];
	inside->n_rlimits = rlimits_plan(&plan->create.limits, plan->n_tasks > 0, !plan->watch_disk,
					 inside->rlimits);
	inside->user =
		has_userns ? IDS_INSIDE_UID : ids_outer_id(self->ids, plan->slot, plan->own_user);
}

/* Waits until the agent runs, or the child says why not. */
static int wait_for_agent(int status_fd, struct err *err)
{
	struct err said;

	if (fd_wait_readable(status_fd, AGENT_START_MS) <= 0)
		return err_make(err, ERR_SETUP, "the sandbox was not ready in %d s",
				AGENT_START_MS / 1000);
	ssize_t n = fd_read_exact(status_fd, &said, sizeof(said));
	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(said))
		return err_make(err, ERR_SETUP, "the sandbox died while it was made");
	err_sanitize(&said);
	said.kind = ERR_SETUP;
	*err = said;
	return -err->errnum;
}

static int release(const struct self *self, pid_t pid, int sync_fd, struct err *err)
{
	int r = 0;

	if (!(self->plan.without & WITHOUT_USERNS))
		r = ids_map_sandbox(self->ids, self->plan.slot, self->plan.own_user, self->proc_fd,
				    pid, err);
	if (r == 0 && write(sync_fd, "g", 1) != 1)
		r = err_errno(err, errno, "release the sandbox");
	return r;
}

/* A network namespace is the dearest part of a sandbox: the next one is made while the child
 * builds this one's root, where more than one is to come. */
static void prepare_network(struct self *self)
{
	struct err ignored; /* the start tries again, and says why */

	if (!self->has_network)
		self->has_network = outer_new_network(&ignored) == 0;
}

static int run_child(struct self *self, struct inside *inside, pid_t *ret_pid, int *ret_pidfd,
		     struct launcher_reply *reply, struct err *err)
{
	int sync[2], status[2], pidfd = -1;
	struct sys_clone_args args = {
		.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD |
			 (self->plan.without & WITHOUT_USERNS ? 0 : CLONE_NEWUSER),
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};

	if (pipe2(sync, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	auto_close int sync_in = sync[0], sync_out = sync[1];
	if (pipe2(status, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	auto_close int status_in = status[0], status_out = status[1];

	inside->sync_fd = sync_in;
	inside->status_fd = status_out;
	pid_t pid = sys_clone3(&args);
	if (pid == 0) {
		close(sync_out); /* else our own copy would keep the pipe from ending */
		inside_main(inside);
	}
	if (pid < 0)
		return err_errno(err, errno, "make the sandbox's namespaces");
	drop_fd(&status_out);
	int r = release(self, pid, sync_out, err);
	drop_fd(&sync_out);
	self->has_network = false; /* it is the child's now */
	if (r == 0 && self->ids->n_slots > 1)
		prepare_network(self);
	if (r == 0)
		r = wait_for_agent(status_in, err);
	if (r == 0)
		r = verify_sandbox(self->proc_fd, pid, self->first_net, self->ids, &self->plan,
				   inside, &reply->layers_held, &reply->layers_absent, err);
	if (r < 0) {
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		close(pidfd);
		return r;
	}
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	return 0;
}

static int start(struct self *self, struct launcher_reply *reply, int *ret_pidfd, struct err *err)
{
	struct inside inside = { 0 };
	struct plan *plan = &self->plan;

	if (plan->slot >= LAUNCHER_SLOTS || self->jails[plan->slot].pid)
		return err_make(err, ERR_CONFLICT, "slot %u is in use", plan->slot);
	if (plan->n_tasks > AGENT_TASKS_MAX || self->n_fds < PLAN_FD_FIRST + plan->n_tasks)
		return err_make(err, ERR_PROTOCOL, "the plan came without its descriptors");
	int r = layers_plan_root(&self->layers, plan, self->fds, self->n_fds, &inside.root, err);
	if (r == 0 && !self->has_network)
		r = outer_new_network(err);
	if (r == 0) {
		struct jail *jail = &self->jails[plan->slot];
		plan_inside(self, &inside);
		*jail = (struct jail){ .workspace_fd = -1 };
		r = run_child(self, &inside, &jail->pid, ret_pidfd, reply, err);
		reply->outer_pid = jail->pid;
		reply->landlock_abi = (uint32_t)self->abi;
		if (r == 0 && plan->watch_disk)
			jail->workspace_fd = fcntl(inside.root.workspace_fd, F_DUPFD_CLOEXEC, 3);
	}
	layers_close_root(&inside.root);
	return r;
}

/* A large workspace is counted less often: at most a tenth of our time goes into it. */
static void count_workspace(struct jail *jail, bool is_last)
{
	int64_t now = clock_mono_ms();

	if (jail->workspace_fd < 0 || (now < jail->count_after_ms && !is_last))
		return;
	watch_disk(jail->workspace_fd, &jail->tree);
	jail->count_after_ms = now + 100 + 10 * (clock_mono_ms() - now);
}

static int stats(struct self *self, struct launcher_reply *reply, struct err *err)
{
	const struct plan *plan = &self->plan;

	if (plan->slot >= LAUNCHER_SLOTS || !self->jails[plan->slot].pid)
		return err_make(err, ERR_NOT_FOUND, "no sandbox in slot %u", plan->slot);
	struct jail *jail = &self->jails[plan->slot];
	watch_tree(self->proc_fd, jail->pid, &jail->tree);
	watch_files(self->proc_fd, jail->pid, jail->workspace_fd, &jail->tree);
	count_workspace(jail, plan->watch == WATCH_LAST);
	reply->tree = jail->tree;
	/* The warden has decided; we only have the hands for it. */
	if (plan->watch == WATCH_KILL_CODE)
		watch_kill_code(self->proc_fd, jail->pid);
	if (plan->watch == WATCH_STOP_WRITES)
		watch_stop_writes(self->proc_fd, jail->pid);
	return 0;
}

/* Files that belong to uids of a sandbox can be removed by a user only in here. */
static int remove_tree(const struct self *self, struct err *err)
{
	char path[1100];

	if (!self->layers.with_host || self->plan.remove_path[0] != '/')
		return err_make(err, ERR_INVALID, "there is nothing to remove");
	snprintf(path, sizeof(path), "host%.1024s", self->plan.remove_path);
	char *slash = strrchr(path, '/');
	*slash = '\0';
	auto_close int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : path_remove_tree(dir, slash + 1);
	return r < 0 ? err_errno(err, -r, "remove '%s'", self->plan.remove_path) : 0;
}

static void answer(struct self *self)
{
	struct launcher_reply reply = { .ask = self->plan.ask, .slot = self->plan.slot };
	int pidfd = -1, r = 0;

	switch (self->plan.ask) {
	case LAUNCHER_START:
		r = start(self, &reply, &pidfd, &reply.err);
		break;
	case LAUNCHER_KILL:
		if (self->plan.slot < LAUNCHER_SLOTS && self->jails[self->plan.slot].pid)
			(void)kill(self->jails[self->plan.slot].pid, SIGKILL);
		break;
	case LAUNCHER_STATS:
		r = stats(self, &reply, &reply.err);
		break;
	case LAUNCHER_REMOVE:
		r = remove_tree(self, &reply.err);
		break;
	default:
		r = err_make(&reply.err, ERR_PROTOCOL, "unknown ask %u", self->plan.ask);
	}
	reply.failed = r < 0;
	(void)fd_send(self->sock, &reply, sizeof(reply), &pidfd, pidfd >= 0);
	drop_fd(&pidfd);
}

/* The warden is the same program; still, a cut message ends us. */
static void on_ask(struct self *self)
{
	memset(&self->plan, 0,
	       offsetof(struct plan, create) + offsetof(struct warden_create, strings));
	ssize_t n = fd_recv(self->sock, &self->plan, sizeof(self->plan), self->fds, FD_PASS_MAX,
			    &self->n_fds);
	if (n < (ssize_t)offsetof(struct plan, create))
		_exit(0);
	answer(self);

	for (size_t i = 0; i < self->n_fds; i++)
		close(self->fds[i]);
	self->n_fds = 0;
}

/* We are the first process of a pid namespace: everybody's children come to us. */
static void on_child(struct self *self)
{
	struct signalfd_siginfo info;
	pid_t pid;

	(void)!read(self->signal_fd, &info, sizeof(info)); /* what counts is who can be reaped */
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (uint32_t slot = 0; slot < LAUNCHER_SLOTS; slot++) {
			if (self->jails[slot].pid != pid)
				continue;
			struct launcher_reply reply = { .slot = slot, .ended = 1 };
			self->jails[slot].pid = 0;
			drop_fd(&self->jails[slot].workspace_fd);
			(void)fd_send(self->sock, &reply, sizeof(reply), NULL, 0);
		}
}

static int set_up(struct self *self, struct err *err)
{
	sigset_t child;
	char go;

	/* Written maps, or the warden is gone. */
	if (fd_recv(self->sock, &go, 1, NULL, 0, NULL) != 1)
		_exit(0);
	if (chdir("/") < 0)
		return err_errno(err, errno, "enter '/'");
	if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
		return err_errno(err, errno, "become root of the outer namespace");
	umask(0022);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	self->signal_fd = signalfd(-1, &child, SFD_CLOEXEC);
	int r = outer_enter(self->layers.with_host, err);
	if (r < 0)
		return r;
	self->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (self->signal_fd < 0 || self->proc_fd < 0)
		return err_errno(err, errno, "open the launcher's own /proc");
	/* After the change of uid our /proc files, and those of our children before they exec, are
	 * the real root's, and we could not write a child's maps.  Nobody in a sandbox sees us. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	self->agent_fd = make_agent(err);
	if (self->agent_fd < 0)
		return self->agent_fd;
	if (readlinkat(self->proc_fd, "self/ns/net", self->first_net, sizeof(self->first_net) - 1) <
	    0)
		return err_errno(err, errno, "look at our network namespace");
	self->abi = landlock_abi();
	self->layers.proc_fd = self->proc_fd;
	self->layers.n_masks = template_proc_masks(self->proc_fd, self->layers.masks, err);
	return self->layers.n_masks < 0 ? self->layers.n_masks : 0;
}

_Noreturn void launcher_main(int sock, const struct ids *ids)
{
	static struct self self;
	struct err err = { 0 };

	self.sock = sock;
	self.ids = ids;
	self.layers = (struct layers){ .ids = ids, .with_host = ids->mode != IDS_ROOT };
	int broken = set_up(&self, &err);
	if (broken == 0)
		prepare_network(&self);
	for (;;) {
		struct pollfd polls[] = {
			{ .fd = sock, .events = POLLIN },
			{ .fd = self.signal_fd, .events = POLLIN },
		};
		if (poll(polls, ARRAY_LEN(polls), -1) < 0)
			continue;
		if (broken < 0) {
			/* The first ask hears why. */
			struct launcher_reply reply = { .failed = 1, .err = err };
			reply.err.kind = ERR_SETUP;
			(void)fd_send(sock, &reply, sizeof(reply), NULL, 0);
			_exit(1);
		}
		if (polls[1].revents)
			on_child(&self);
		if (polls[0].revents)
			on_ask(&self);
	}
}
