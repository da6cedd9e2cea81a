/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_jail.c - the tier `jail`: namespaces, overlay, Landlock, seccomp, cgroups. */
#include "backend.h"

#include "agent_bytes.h"
#include "cgroup.h"
#include "host.h"
#include "jailroot.h"
#include "launcher.h"
#include "mounts.h"
#include "runs.h"
#include "seccomp.h"
#include "sources.h"
#include "switches.h"
#include "workspace.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>

struct jail {
	struct run run;
	struct cgroup cgroup;
	struct workspace workspace;
	struct limits limits;
	uint32_t slot;
	bool own_user, scratch, running;
	bool stop_code; /* the watcher decided so */
	int pidfd;
	int handover_fd; /* kernels of a zygote go to the agent through it */
	int64_t start_us;
	struct usage usage;
	int dir_workspace_fd; /* as root: the user's directory, mapped */
};

static int probe(struct err *err)
{
	return host_ready(err);
}

/* The directory of the user's that becomes /workspace, or NULL. */
static const struct warden_bind *find_workspace(const struct warden_create *create)
{
	for (uint32_t i = 0; i < create->n_binds; i++)
		if (create->binds[i].kind == BIND_WORKSPACE_RO ||
		    create->binds[i].kind == BIND_WORKSPACE_RW)
			return &create->binds[i];
	return NULL;
}

static int make_workspace(struct jail *jail, const struct warden_create *create, struct err *err)
{
	const struct warden_bind *bind = find_workspace(create);
	uid_t uid = ids_host_uid(&host.ids, jail->slot, jail->own_user);
	gid_t gid = ids_host_gid(&host.ids, jail->slot, jail->own_user);

	if (bind && host.ids.mode == IDS_ROOT) {
		jail->dir_workspace_fd =
			workspace_show(create->strings + bind->source,
				       bind->kind == BIND_WORKSPACE_RO, uid, gid, err);
		return jail->dir_workspace_fd < 0 ? jail->dir_workspace_fd : 0;
	}
	if (bind || !create->own_workspace)
		return 0;
	jail->scratch = true;
	return workspace_create(&jail->workspace, &jail->run, host.state_dir, &create->limits,
				host.ids.mode == IDS_ROOT, uid, gid, err);
}

/* Recorded first: a warden that dies between must not leave a cgroup that nobody knows. */
static int make_cgroup(struct jail *jail, const struct backend_spec *spec,
		       const struct limits *limits, struct err *err)
{
	bool has_cgroups = host.cgroups.version != 0;
	struct cgroup wanted = { .host = has_cgroups ? &host.cgroups : NULL };

	snprintf(wanted.leaf, sizeof(wanted.leaf), "%s", spec->id);
	int r = run_record(&jail->run, &host.ids, &wanted, err);
	if (r < 0 || !has_cgroups)
		return r;
	r = cgroup_create(&jail->cgroup, &host.cgroups, spec->id, limits, err);
	return r < 0 ? r : run_record(&jail->run, &host.ids, &jail->cgroup, err);
}

static int create(const struct backend_spec *spec, void **ret_state, struct err *err)
{
	const struct warden_create *wanted = spec->create;
	const struct warden_bind *bind = find_workspace(wanted);
	struct jail *jail = calloc(1, sizeof(*jail));

	if (!jail)
		return err_errno(err, ENOMEM, "make a jail");
	*ret_state = jail; /* half-built state is given back by destroy */
	jail->run = (struct run){ .runs_fd = -1, .dir_fd = -1, .lock_fd = -1 };
	jail->workspace.mount_fd = jail->workspace.quota_fd = jail->pidfd = jail->dir_workspace_fd =
		jail->handover_fd = -1;
	jail->limits = wanted->limits;
	jail->start_us = clock_mono_us();
	jail->own_user = bind != NULL;
	jail->slot = UINT32_MAX;
	int r = sources_check(wanted, host.state_dir, err);
	if (r == 0)
		r = host_take_slot(&jail->slot, err);
	if (r == 0)
		r = run_create(&jail->run, host.state_dir, spec->id, err);
	if (r == 0)
		r = make_cgroup(jail, spec, &wanted->limits, err);
	if (r == 0)
		r = make_workspace(jail, wanted, err);
	/* What passes through the loop device is charged there, the rest at the disk. */
	if (r == 0 && jail->workspace.device)
		cgroup_limit_io(&jail->cgroup, jail->workspace.device, &wanted->limits);
	if (r == 0 && jail->workspace.loop)
		cgroup_limit_io(&jail->cgroup, jail->workspace.loop, &wanted->limits);
	return r;
}

/* The descriptors that go with a plan. */
struct cargo {
	int fds[FD_PASS_MAX];
	size_t n; /* the first two are not the cargo's own */
};

static int add(struct cargo *cargo, int fd, uint32_t *ret_index, struct err *err)
{
	if (cargo->n == FD_PASS_MAX) {
		close(fd);
		return err_make(err, ERR_LIMIT, "more than %d files and trees for one sandbox",
				FD_PASS_MAX);
	}
	*ret_index = (uint32_t)cargo->n;
	cargo->fds[cargo->n++] = fd;
	return 0;
}

static int add_mount(struct cargo *cargo, const char *path, uint32_t *ret_index, struct err *err)
{
	int fd = mounts_clone(AT_FDCWD, path,
			      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY, err);

	return fd < 0 ? fd : add(cargo, fd, ret_index, err);
}

/* As root the launcher cannot open what is root's: it gets detached mounts. */
static int load_binds(struct plan *plan, struct cargo *cargo, struct err *err)
{
	const struct warden_create *wanted = &plan->create;

	for (uint32_t i = 0; i < wanted->n_binds; i++) {
		const struct warden_bind *bind = &wanted->binds[i];
		if (bind->kind == BIND_WORKSPACE_RO || bind->kind == BIND_WORKSPACE_RW)
			continue;
		int r = add_mount(cargo, wanted->strings + bind->source, &plan->bind_fd[i], err);
		if (r == 0 && wanted->strings[bind->over])
			r = add_mount(cargo, wanted->strings + bind->over, &plan->over_fd[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int load_workspace(struct jail *jail, struct plan *plan, struct cargo *cargo,
			  struct err *err)
{
	const struct warden_bind *bind = find_workspace(&plan->create);
	int fd = jail->scratch ? jail->workspace.mount_fd : jail->dir_workspace_fd;

	plan->scratch = jail->scratch;
	plan->workspace_ro = bind && bind->kind == BIND_WORKSPACE_RO;
	plan->watch_disk = jail->scratch && jail->workspace.by == BY_WATCHER;
	if (fd >= 0) {
		int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		return copy < 0 ? err_errno(err, errno, "keep the workspace")
				: add(cargo, copy, &plan->workspace_fd, err);
	}
	const char *path = bind            ? plan->create.strings + bind->source
			   : jail->scratch ? jail->workspace.path
					   : "";
	if ((size_t)snprintf(plan->workspace_path, sizeof(plan->workspace_path), "%s", path) >=
	    sizeof(plan->workspace_path))
		return err_make(err, ERR_INVALID, "the path of the workspace is too long");
	return 0;
}

/* Every root has the base over it. */
static int add_base(struct warden_create *wanted, struct warden_bind *image, struct err *err)
{
	char path[700];

	snprintf(path, sizeof(path), "%s/base", host.layer);
	int at = warden_create_string(wanted, path, err);
	if (at > 0)
		image->over = (uint32_t)at;
	return at < 0 ? at : 0;
}

/* A sandbox without an image has /usr, and the host's own links into it. */
static int add_host_trees(struct warden_create *wanted, struct err *err)
{
	bool has_usr = false;
	char path[700];

	for (uint32_t i = 0; i < wanted->n_binds; i++) {
		if (wanted->binds[i].kind == BIND_IMAGE)
			return add_base(wanted, &wanted->binds[i], err);
		if (wanted->binds[i].kind == BIND_TREE &&
		    strcmp(wanted->strings + wanted->binds[i].target, "/usr") == 0)
			has_usr = true;
	}
	snprintf(path, sizeof(path), "%s/root", host.layer);
	int r = warden_create_bind(wanted, BIND_IMAGE, path, "/", "", err);
	if (r == 0)
		r = add_base(wanted, &wanted->binds[wanted->n_binds - 1], err);
	if (r == 0 && !has_usr)
		r = warden_create_bind(wanted, BIND_TREE, "/usr", "/usr", "", err);
	for (int i = 0; r == 0 && i < host.n_top_dirs; i++)
		r = warden_create_bind(wanted, BIND_TREE, host.top_dirs[i], host.top_dirs[i], "",
				       err);
	return r;
}

static int load(struct jail *jail, struct plan *plan, struct cargo *cargo, struct err *err)
{
	uint32_t index;
	int tasks[CGROUP_LEAF_MAX];
	int r = add_host_trees(&plan->create, err);

	if (r < 0)
		return r;
	if (jail->cgroup.host) {
		int n = cgroup_open_tasks(&jail->cgroup, tasks, err);
		if (n < 0)
			return n;
		plan->n_tasks = (uint32_t)n;
		for (int i = 0; i < n; i++)
			(void)add(cargo, tasks[i], &index, err); /* the first few always fit */
	}
	if (host.ids.mode == IDS_ROOT) {
		int dev = jailroot_make_dev(err);
		if (dev < 0)
			return dev;
		plan->has_dev = 1;
		(void)add(cargo, dev, &index, err);
		r = load_binds(plan, cargo, err);
	}
	return r < 0 ? r : load_workspace(jail, plan, cargo, err);
}

static void describe(const struct jail *jail, const struct launcher_reply *reply,
		     struct sandbox_facts *facts)
{
	struct utsname uts;

	*facts = (struct sandbox_facts){
		.tier = TIER_JAIL,
		.layers_held = reply->layers_held,
		.layers_absent = reply->layers_absent,
		.landlock_abi = reply->landlock_abi,
		.uid_base = ids_first_uid(&host.ids, jail->slot),
		.uid_count = host.ids.slot_size,
		.cgroup_version = host.cgroups.version,
		.by = { .memory = BY_WATCHER,
			.cpu = BY_NOBODY,
			.pids = BY_RLIMIT,
			.disk = jail->scratch ? jail->workspace.by : BY_NOBODY,
			.disk_files = jail->scratch ? jail->workspace.by : BY_NOBODY,
			.tmp = BY_MOUNT,
			.open_files = BY_RLIMIT,
			.cpu_time = BY_WATCHER,
			.io = BY_NOBODY },
	};
	cgroup_enforcement(&jail->cgroup, &facts->by);
	if (uname(&uts) == 0)
		snprintf(facts->kernel, sizeof(facts->kernel), "%.63s", uts.release);
	memcpy(facts->seccomp_digest, seccomp_digest, sizeof(facts->seccomp_digest));
	memcpy(facts->agent_digest, agent_digest, sizeof(facts->agent_digest));
}

/* The agent's first frame stays in the stream for the client; the canary's errno is in it. */
static int check_canary(int stream, bool landlock, struct err *err)
{
	uint8_t hello[FRAME_HEADER + 12];
	int64_t until = clock_mono_ms() + 10000;

	for (;;) {
		ssize_t n = recv(stream, hello, sizeof(hello), MSG_PEEK | MSG_DONTWAIT);
		if (n == (ssize_t)sizeof(hello))
			break;
		if (n == 0)
			return err_make(err, ERR_SETUP, "the agent ended before it said a word");
		if (clock_mono_ms() > until)
			return err_make(err, ERR_SETUP, "the agent does not answer");
		if (n < 0)
			(void)fd_wait_readable(stream, (int)(until - clock_mono_ms()));
		else
			usleep(200);
	}
	struct unpack in = { .data = hello, .len = sizeof(hello) };
	uint32_t len = unpack_u32(&in), type = unpack_u32(&in), channel = unpack_u32(&in);
	uint32_t version = unpack_u32(&in), canary = unpack_u32(&in);
	if (len != 12 || type != AGENT_HELLO || channel != 0 || version != AGENT_WIRE_VERSION)
		return err_make(err, ERR_SETUP, "the agent greets with something else");
	if (landlock && canary != EACCES)
		return err_make(err, ERR_SETUP,
				"layer 'landlock' does not hold: the canary's errno is %u", canary);
	return 0;
}

static int check_required(const struct warden_create *wanted, const struct sandbox_facts *facts,
			  struct err *err)
{
	for (unsigned i = 0; i < LAYERS_; i++)
		if ((wanted->require & 1u << i) && !(facts->layers_held & 1u << i))
			return err_make(
				err, ERR_ISOLATION,
				"the required layer '%s' is not to be had here; see cay doctor",
				layer_name(i));
	return 0;
}

static int launch(struct jail *jail, const struct backend_spec *spec, int stream, int handover,
		  struct launcher_reply *reply, struct err *err)
{
	static struct plan plan;
	struct cargo cargo = { .fds = { stream, handover }, .n = PLAN_FD_FIRST };

	memset(&plan, 0, sizeof(plan));
	plan.ask = LAUNCHER_START;
	plan.slot = jail->slot;
	plan.own_user = jail->own_user;
	plan.without = switches_without();
	plan.workspace_fd = PLAN_FD_NONE;
	memset(plan.bind_fd, 0xff, sizeof(plan.bind_fd));
	memset(plan.over_fd, 0xff, sizeof(plan.over_fd));
	memcpy(&plan.create, spec->create,
	       offsetof(struct warden_create, strings) + spec->create->strings_len);
	int r = load(jail, &plan, &cargo, err);
	size_t len = offsetof(struct plan, create) + offsetof(struct warden_create, strings) +
		     plan.create.strings_len;
	if (r == 0)
		r = launcher_ask(&host.launcher, &plan, len, cargo.fds, cargo.n, reply,
				 &jail->pidfd, err);
	for (size_t i = PLAN_FD_FIRST; i < cargo.n; i++)
		close(cargo.fds[i]);
	return r;
}

static int start(void *state, const struct backend_spec *spec, struct sandbox_facts *ret_facts,
		 int *ret_stream, struct err *err)
{
	struct jail *jail = state;
	struct launcher_reply reply;
	int streams[2], sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, streams) < 0)
		return err_errno(err, errno, "make the agent's stream");
	auto_close int ours = streams[0], theirs = streams[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return err_errno(err, errno, "make the agent's socket");
	auto_close int handover = sockets[0], agents = sockets[1];

	int r = launch(jail, spec, theirs, agents, &reply, err);
	if (r < 0)
		return r;
	jail->running = true;
	drop_fd(&theirs);
	describe(jail, &reply, ret_facts);
	r = check_canary(ours, ret_facts->layers_held & 1u << LAYER_LANDLOCK, err);
	if (r == 0)
		r = check_required(spec->create, ret_facts, err);
	if (r < 0)
		return r;
	ret_facts->setup_us = (uint64_t)(clock_mono_us() - jail->start_us);
	jail->handover_fd = take_fd(&handover);
	*ret_stream = take_fd(&ours);
	return 0;
}

static int limits(void *state, const struct limits *wanted, struct err *err)
{
	struct jail *jail = state;

	if (!jail->cgroup.host)
		return err_make(err, ERR_UNSUPPORTED, "limits of a running sandbox need cgroups");
	int r = cgroup_set_limits(&jail->cgroup, wanted, err);
	if (r == 0)
		jail->limits = *wanted;
	return r;
}

/* What only the launcher can count. */
static void count_tree(struct jail *jail, enum plan_watch watch)
{
	struct plan plan_head = { .ask = LAUNCHER_STATS, .slot = jail->slot, .watch = watch };
	struct launcher_reply reply;
	struct err err;

	if (!jail->running || launcher_has_ended(&host.launcher, jail->slot) ||
	    launcher_ask(&host.launcher, &plan_head, offsetof(struct plan, create), NULL, 0, &reply,
			 NULL, &err) < 0)
		return;
	if (!jail->cgroup.host) {
		jail->usage.cpu_us = reply.tree.cpu_us;
		jail->usage.peak_memory_bytes = reply.tree.peak_memory_bytes;
		jail->usage.peak_pids = reply.tree.peak_pids;
		jail->usage.io_read_bytes = reply.tree.io_read_bytes;
		jail->usage.io_write_bytes = reply.tree.io_write_bytes;
		if (reply.tree.pids >= jail->limits.pids)
			jail->usage.pids_denied = 1;
	}
	if (jail->scratch && jail->workspace.by == BY_WATCHER) {
		jail->usage.disk_bytes = reply.tree.disk_bytes + reply.tree.deleted_bytes;
		jail->usage.disk_files = reply.tree.disk_files;
	}
}

/* Is there something that no cgroup and no quota counts? */
static bool is_watched(const struct jail *jail)
{
	return !jail->cgroup.host || (jail->scratch && jail->workspace.by == BY_WATCHER);
}

static void stop_code(struct jail *jail)
{
	struct err ignored;

	jail->stop_code = true;
	(void)cgroup_freeze(&jail->cgroup, true, &ignored);
	cgroup_lift_quota(&jail->cgroup);
	count_tree(jail, WATCH_KILL_CODE);
	(void)cgroup_freeze(&jail->cgroup, false, &ignored);
}

/* Limits that no kernel mechanism holds for us. */
static enum warden_event judge(struct jail *jail)
{
	struct usage *usage = &jail->usage;
	const struct limits *most = &jail->limits;

	if (!jail->stop_code && most->cpu_time_ms && usage->cpu_us / 1000 >= most->cpu_time_ms) {
		usage->cpu_time_hit = 1;
		stop_code(jail);
		return WARDEN_EVENT_CPU_TIME;
	}
	if (!jail->stop_code && !jail->cgroup.host &&
	    usage->peak_memory_bytes > most->memory_bytes) {
		usage->oom_kills++;
		stop_code(jail);
		return WARDEN_EVENT_MEMORY;
	}
	if (jail->scratch && jail->workspace.by == BY_WATCHER &&
	    (usage->disk_bytes + WORKSPACE_NEARLY_FULL > most->disk_bytes ||
	     usage->disk_files >= most->disk_files)) {
		bool first = !usage->disk_full;
		usage->disk_full = 1;
		/* Its writes fail now; who goes on making files is stopped. */
		if (usage->disk_bytes > most->disk_bytes + most->disk_bytes / 2 ||
		    usage->disk_files > most->disk_files + most->disk_files / 2)
			stop_code(jail);
		else
			count_tree(jail, WATCH_STOP_WRITES);
		return first ? WARDEN_EVENT_DISK : WARDEN_EVENT_NONE;
	}
	return WARDEN_EVENT_NONE;
}

static int stats(void *state, struct usage *ret_usage, enum warden_event *ret_event,
		 struct err *err)
{
	struct jail *jail = state;

	(void)err;
	jail->usage.wall_us = (uint64_t)(clock_mono_us() - jail->start_us);
	if (is_watched(jail))
		count_tree(jail, WATCH_ONLY);
	cgroup_usage(&jail->cgroup, &jail->usage);
	if (jail->scratch)
		workspace_usage(&jail->workspace, &jail->usage);
	*ret_event = WARDEN_EVENT_NONE;
	if (jail->running && launcher_has_ended(&host.launcher, jail->slot)) {
		jail->running = false;
		*ret_event = WARDEN_EVENT_ENDED;
	} else if (jail->running) {
		*ret_event = judge(jail);
	}
	*ret_usage = jail->usage;
	return 0;
}

static int freeze(void *state, struct err *err)
{
	return cgroup_freeze(&((struct jail *)state)->cgroup, true, err);
}

static int thaw(void *state, struct err *err)
{
	return cgroup_freeze(&((struct jail *)state)->cgroup, false, err);
}

/* Frozen they cannot fork away, without quota they die fast. */
static int kill_jail(void *state, struct err *err)
{
	struct jail *jail = state;
	struct err ignored;
	int64_t until = clock_mono_ms() + 10000;

	if (!jail->running)
		return 0;
	if (is_watched(jail)) {
		count_tree(jail, WATCH_LAST);
		(void)judge(jail);
	}
	bool freeze_first = cgroup_is_crowded(&jail->cgroup);
	if (freeze_first) {
		(void)cgroup_freeze(&jail->cgroup, true, &ignored);
		cgroup_lift_quota(&jail->cgroup);
	}
	(void)sys_pidfd_send_signal(jail->pidfd, SIGKILL);
	if (freeze_first)
		(void)cgroup_freeze(&jail->cgroup, false, &ignored);
	while (!launcher_has_ended(&host.launcher, jail->slot)) {
		if (clock_mono_ms() > until)
			return err_make(err, ERR_TIMEOUT, "the sandbox does not end");
		(void)fd_wait_readable(host.launcher.sock, 100);
		(void)launcher_listen(&host.launcher, &ignored);
	}
	jail->running = false;
	return 0;
}

/* As a user: files of the sandbox's uids go while U, which maps them, is there. */
static void remove_files(struct jail *jail)
{
	static struct plan plan;
	struct launcher_reply reply;
	struct err err;

	if (host.ids.mode != IDS_RANGES || !jail->workspace.path[0])
		return;
	/* Where it was killed, another one has the same hands. */
	if (!host.launcher.pid && launcher_start(&host.launcher, &host.ids, &err) < 0)
		return;
	memset(&plan, 0, offsetof(struct plan, create));
	plan.ask = LAUNCHER_REMOVE;
	snprintf(plan.remove_path, sizeof(plan.remove_path), "%s", jail->workspace.path);
	(void)launcher_ask(&host.launcher, &plan, offsetof(struct plan, create), NULL, 0, &reply,
			   NULL, &err);
}

static void destroy(void *state)
{
	struct jail *jail = state;
	struct err err;

	if (!jail)
		return;
	if (kill_jail(jail, &err) < 0)
		launcher_stop(&host.launcher); /* takes everything in U with it */
	cgroup_destroy(&jail->cgroup);
	workspace_destroy(&jail->workspace);
	drop_fd(&jail->dir_workspace_fd);
	drop_fd(&jail->pidfd);
	drop_fd(&jail->handover_fd);
	remove_files(jail);
	run_destroy(&jail->run);
	host_give_slot(jail->slot);
	free(jail);
}

const struct backend backend_jail = {
	.name = "jail",
	.tier = TIER_JAIL,
	.probe = probe,
	.create = create,
	.start = start,
	.limits = limits,
	.stats = stats,
	.freeze = freeze,
	.thaw = thaw,
	.kill = kill_jail,
	.destroy = destroy,
};
