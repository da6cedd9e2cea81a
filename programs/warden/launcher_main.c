/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher_main.c - the launcher itself, in U. */
#include "launcher.h"

#include "agent_bytes.h"
#include "inside.h"
#include "landlock.h"
#include "mounts.h"
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

#define LAYERS_MAX 128
#define TEMPLATES_MAX 128
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
	bool with_host; /* an ordinary user */
	int abi;
	char first_net[64]; /* the network namespace we came from */
	struct proc_mask masks[PROC_MASKS_MAX];
	int n_masks;
	char *layers[LAYERS_MAX]; /* source of /l/N */
	unsigned n_layers;
	char *templates[TEMPLATES_MAX]; /* key of /t/N */
	unsigned n_templates;
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
	int ro = open(path, O_RDONLY | O_CLOEXEC);
	if (ro < 0 || fchmod(fd, 0111) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_errno(err, errno, "seal the agent");
	return ro;
}

/* A descriptor of the plan, or -1. */
static int plan_fd(const struct self *self, uint32_t index)
{
	return index < self->n_fds ? self->fds[index] : -1;
}

/* A detached mount of a source: root sends it, a user's launcher takes it from /host. */
static int take_source(const struct self *self, uint32_t index, const char *path, unsigned attrs,
		       struct err *err)
{
	char host[1100];

	if (!self->with_host) {
		int fd = plan_fd(self, index);
		if (fd < 0)
			return err_make(err, ERR_PROTOCOL, "'%s' came without its descriptor",
					path);
		int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (copy < 0)
			return err_errno(err, errno, "keep the mount of '%s'", path);
		int r = mounts_restrict(copy, attrs, err);
		if (r < 0)
			close(copy);
		return r < 0 ? r : copy;
	}
	if ((size_t)snprintf(host, sizeof(host), "/host%s", path) >= sizeof(host))
		return err_make(err, ERR_INVALID, "the path '%.200s' is too long", path);
	int fd = mounts_clone(AT_FDCWD, host, attrs, err);
	return fd < 0 ? err_while(err, "show '%s'", path) : fd;
}

/* The number N of /l/N that shows the source. */
static int find_layer(struct self *self, uint32_t index, const char *path, struct err *err)
{
	char point[32];

	for (unsigned i = 0; i < self->n_layers; i++)
		if (strcmp(self->layers[i], path) == 0)
			return (int)i;
	if (self->n_layers == LAYERS_MAX)
		return err_make(err, ERR_LIMIT, "more than %d layers are in use", LAYERS_MAX);
	auto_close int fd = take_source(
		self, index, path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (fd < 0)
		return fd;
	snprintf(point, sizeof(point), "/l/%u", self->n_layers);
	if (mkdir(point, 0755) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", point);
	int r = mounts_attach(fd, AT_FDCWD, point, err);
	if (r < 0)
		return r;
	self->layers[self->n_layers] = strdup(path);
	if (!self->layers[self->n_layers])
		return err_errno(err, ENOMEM, "remember a layer");
	return (int)self->n_layers++;
}

/* Sandboxes with the same limits and the same mount points share a template. */
static void template_key(const struct plan *plan, char *ret_key, size_t size)
{
	const struct warden_create *create = &plan->create;
	size_t len = (size_t)snprintf(ret_key, size, "%u %llu", create->limits.cpu_millis,
				      (unsigned long long)create->limits.memory_bytes);

	for (uint32_t i = 0; i < create->n_binds && len < size; i++)
		if (create->binds[i].kind == BIND_TREE)
			len += (size_t)snprintf(ret_key + len, size - len, " %s",
						create->strings + create->binds[i].target);
}

static int find_template(struct self *self, struct err *err)
{
	char key[2048], path[32];

	template_key(&self->plan, key, sizeof(key));
	for (unsigned i = 0; i < self->n_templates; i++)
		if (strcmp(self->templates[i], key) == 0)
			return (int)i;
	if (self->n_templates == TEMPLATES_MAX)
		return err_make(err, ERR_LIMIT, "more than %d shapes of sandboxes are in use",
				TEMPLATES_MAX);
	snprintf(path, sizeof(path), "/t/%u", self->n_templates);
	if (mkdir(path, 0755) < 0)
		return err_errno(err, errno, "make '%s'", path);
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = template_build(dir, self->proc_fd, &self->plan, err);
	if (r < 0) {
		(void)path_remove_tree(AT_FDCWD, path + 1);
		return r;
	}
	self->templates[self->n_templates] = strdup(key);
	if (!self->templates[self->n_templates])
		return err_errno(err, ENOMEM, "remember a template");
	return (int)self->n_templates++;
}

static int add_tree(struct self *self, struct jail_root *root, uint32_t i, struct err *err)
{
	const struct warden_create *create = &self->plan.create;
	const struct warden_bind *bind = &create->binds[i];

	if (root->n_trees == JAIL_TREES_MAX)
		return err_make(err, ERR_LIMIT, "more than %d trees in a sandbox", JAIL_TREES_MAX);
	struct jail_tree *tree = &root->trees[root->n_trees];
	int n = find_layer(self, self->plan.bind_fd[i], create->strings + bind->source, err);
	if (n < 0)
		return n;
	snprintf(tree->lower, sizeof(tree->lower), "/l/%d", n);
	if (create->strings[bind->over]) {
		n = find_layer(self, self->plan.over_fd[i], create->strings + bind->over, err);
		if (n < 0)
			return n;
		snprintf(tree->over, sizeof(tree->over), "/l/%d", n);
	}
	tree->target = create->strings + bind->target;
	root->n_trees++;
	return 0;
}

static int add_bind(struct self *self, struct jail_root *root, uint32_t i, struct err *err)
{
	const struct warden_create *create = &self->plan.create;
	const struct warden_bind *bind = &create->binds[i];
	const char *source = create->strings + bind->source;
	int n;

	switch (bind->kind) {
	case BIND_IMAGE:
		n = find_layer(self, self->plan.bind_fd[i], source, err);
		if (n >= 0)
			snprintf(root->lower, sizeof(root->lower), "/l/%d", n);
		return n < 0 ? n : 0;
	case BIND_TREE:
		return add_tree(self, root, i, err);
	case BIND_INPUT:
		n = take_source(self, self->plan.bind_fd[i], source,
				MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					MOUNT_ATTR_NOATIME,
				err);
		if (n < 0)
			return n;
		root->inputs[root->n_inputs].fd = n;
		root->inputs[root->n_inputs++].name = create->strings + bind->target;
		return 0;
	default:
		return 0; /* workspaces are the plan's own fields */
	}
}

/* A user's scratch directory belongs to the sandbox's user; only here, in U, can it be given. */
static int prepare_scratch(const struct self *self, int workspace, struct err *err)
{
	uid_t id = ids_outer_id(self->ids, self->plan.slot, self->plan.own_user);
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", workspace);
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || (mkdirat(dir, "output", 0755) < 0 && errno != EEXIST) ||
	    fchownat(dir, "output", id, id, AT_SYMLINK_NOFOLLOW) < 0 || fchown(dir, id, id) < 0)
		return err_errno(err, errno, "prepare the workspace");
	return 0;
}

static int open_workspace(struct self *self, struct jail_root *root, struct err *err)
{
	const struct plan *plan = &self->plan;
	unsigned attrs =
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (plan->workspace_ro ? MOUNT_ATTR_RDONLY : 0);

	root->workspace_fd = -1;
	root->workspace_ro = plan->workspace_ro;
	root->scratch = plan->scratch;
	if (plan->workspace_fd == PLAN_FD_NONE && !plan->workspace_path[0])
		return 0;
	root->workspace_fd =
		take_source(self, plan->workspace_fd, plan->workspace_path, attrs, err);
	if (root->workspace_fd < 0)
		return root->workspace_fd;
	if (plan->scratch && self->with_host)
		return prepare_scratch(self, root->workspace_fd, err);
	return 0;
}

static int plan_root(struct self *self, struct jail_root *root, struct err *err)
{
	int n = find_template(self, err);
	int r = n < 0 ? n : 0;

	*root = (struct jail_root){
		.masks = self->masks,
		.n_masks = self->n_masks,
		.dev_fd = -1,
		.workspace_fd = -1,
		.bare = self->plan.without & WITHOUT_MOUNTS,
		.limits = &self->plan.create.limits,
	};
	snprintf(root->upper, sizeof(root->upper), "/t/%d", n);
	for (uint32_t i = 0; r == 0 && i < self->plan.create.n_binds; i++)
		r = add_bind(self, root, i, err);
	if (r == 0 && self->plan.has_dev) {
		root->dev_fd = plan_fd(self, PLAN_FD_FIRST + self->plan.n_tasks);
		if (root->dev_fd < 0)
			r = err_make(err, ERR_PROTOCOL, "/dev came without its descriptor");
	}
	return r < 0 ? r : open_workspace(self, root, err);
}

static void close_root(struct jail_root *root)
{
	for (unsigned i = 0; i < root->n_inputs; i++)
		drop_fd(&root->inputs[i].fd);
	drop_fd(&root->workspace_fd);
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
	inside->user = has_userns ? 1000 : ids_outer_id(self->ids, plan->slot, plan->own_user);
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
	int r = plan_root(self, &inside.root, err);
	if (r == 0)
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
	close_root(&inside.root);
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

	if (!self->with_host || self->plan.remove_path[0] != '/')
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
	int status;

	(void)!read(self->signal_fd, &info, sizeof(info));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (uint32_t slot = 0; slot < LAUNCHER_SLOTS; slot++) {
			if (self->jails[slot].pid != pid)
				continue;
			struct launcher_reply reply = { .slot = slot,
							.ended = 1,
							.status = status };
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
	int r = outer_enter(self->with_host, err);
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
	self->n_masks = template_proc_masks(self->proc_fd, self->masks, err);
	self->abi = landlock_abi();
	return self->n_masks < 0 ? self->n_masks : 0;
}

_Noreturn void launcher_main(int sock, const struct ids *ids)
{
	static struct self self;
	struct err err = { 0 };

	self.sock = sock;
	self.ids = ids;
	self.with_host = ids->mode != IDS_ROOT;
	int broken = set_up(&self, &err);
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
