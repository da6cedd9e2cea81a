/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher.h"

#include "jailroot.h"
#include "mounts.h"
#include "warden_fixture.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

static struct ids ids;
static struct launcher launcher;
static struct launcher_reply reply;
static struct plan plan;
static int streams[2], sockets[2], fds[FD_PASS_MAX];
static size_t n_fds;

static void begin(void)
{
	CHECK_INT(chdir("/"), 0);
	CHECK_INT(ids_lease(&ids, 1, &err), 0);
	int r = launcher_start(&launcher, &ids, &err);
	if (r == -EPERM || r == -ENOSPC)
		SKIP("no user namespaces here");
	CHECK_INT(r, 0);
}

static void finish(void)
{
	launcher_stop(&launcher);
	launcher_stop(&launcher);
	CHECK_INT(launcher.pid, 0);
	CHECK_INT(waitpid(-1, NULL, 0), -1);
	ids_release(&ids);
}

static int ask(enum launcher_ask what, uint32_t slot, int *ret_fd)
{
	plan.ask = what;
	plan.slot = slot;
	return launcher_ask(&launcher, &plan,
			    what == LAUNCHER_START ? sizeof(plan) : offsetof(struct plan, create),
			    fds, what == LAUNCHER_START ? n_fds : 0, &reply, ret_fd, &err);
}

TEST(launcher_answers_what_it_cannot_do)
{
	begin();
	CHECK_INT(ask(LAUNCHER_STATS, 0, NULL), -ENOENT);
	CHECK_INT(ask(LAUNCHER_STATS, LAUNCHER_SLOTS, NULL), -ENOENT);
	CHECK_INT(ask((enum launcher_ask)77, 0, NULL), -EPROTO);
	CHECK_INT(ask(LAUNCHER_KILL, 0, NULL), 0); /* already gone */
	CHECK_INT(ask(LAUNCHER_KILL, UINT32_MAX, NULL), 0);
	CHECK_INT(ask(LAUNCHER_REMOVE, 0, NULL), -EINVAL); /* no path */
	plan.n_tasks = AGENT_TASKS_MAX + 1;
	CHECK(ask(LAUNCHER_START, 0, NULL) < 0);
	plan.n_tasks = 0;
	CHECK(ask(LAUNCHER_START, LAUNCHER_SLOTS, NULL) < 0);
	finish();
}

TEST(launcher_ends_with_the_socket_of_its_warden)
{
	begin();
	close(launcher.sock);
	int status = -1;
	CHECK_INT(waitpid(launcher.pid, &status, 0), launcher.pid);
	launcher.pid = 0;
	ids_release(&ids);
}

TEST(launcher_that_is_gone_is_noticed)
{
	begin();
	CHECK_INT(ask(LAUNCHER_KILL, 0, NULL), 0);
	CHECK_INT(kill(launcher.pid, SIGKILL), 0);
	CHECK(fd_wait_readable(launcher.sock, 5000) > 0);
	CHECK(launcher_listen(&launcher, &err) < 0);
	CHECK_INT(launcher.pid, 0);
	CHECK(launcher_has_ended(&launcher, 0));
	finish();
}

TEST(launcher_that_is_cut_off_from_its_maps_is_an_error)
{
	if (is_root())
		SKIP("newuidmap refuses root nothing");
	if (access("/usr/bin/newuidmap", X_OK) < 0)
		SKIP("there is no newuidmap");
	CHECK_INT(ids_lease(&ids, 1, &err), 0);
	struct ids bad = ids;
	bad.mode = IDS_RANGES;
	bad.uid_first = bad.gid_first = 4000000000u; /* nobody was given these */
	bad.n_slots = 1;
	bad.slot_size = 2048;
	int null = open("/dev/null", O_WRONLY), saved = dup(2);
	dup2(null, 2); /* newuidmap says what it thinks of it */
	int r = launcher_start(&launcher, &bad, &err);
	dup2(saved, 2);
	CHECK(r < 0);
	CHECK_INT(launcher.pid, 0);
	CHECK_INT(waitpid(-1, NULL, 0), -1);
	ids_release(&ids);
}

static void add(int fd, uint32_t *ret_index)
{
	CHECK(fd >= 0);
	*ret_index = (uint32_t)n_fds;
	fds[n_fds++] = fd;
}

/* An empty image; as root it travels as a descriptor, a user's launcher takes it from /host. */
static void plan_sandbox(void)
{
	char image[128], base[128];
	uint32_t index;

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, streams), 0);
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	n_fds = 0;
	fds[n_fds++] = streams[1];
	fds[n_fds++] = sockets[1];
	memset(&plan, 0, sizeof(plan));
	memset(plan.bind_fd, 0xff, sizeof(plan.bind_fd));
	memset(plan.over_fd, 0xff, sizeof(plan.over_fd));
	plan.workspace_fd = PLAN_FD_NONE;
	plan.create.limits = profile_find("tiny")->limits;
	snprintf(image, sizeof(image), "%s/image", tmp_path);
	snprintf(base, sizeof(base), "%s/base", tmp_path);
	if (mkdir(image, 0755) == 0 && mkdir(base, 0755) == 0) {
		int to = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int proc = open("/proc", O_PATH | O_CLOEXEC);
		CHECK_INT(template_build_base(to, proc, &err), 0);
		close(to);
		close(proc);
	}
	CHECK_INT(warden_create_bind(&plan.create, BIND_IMAGE, image, "/", base, &err), 0);
	if (ids.mode != IDS_ROOT)
		return;
	plan.has_dev = 1;
	add(jailroot_make_dev(&err), &index);
	add(mounts_clone(AT_FDCWD, image, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, &err),
	    &plan.bind_fd[0]);
	add(mounts_clone(AT_FDCWD, base, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, &err),
	    &plan.over_fd[0]);
}

static void close_plan(void)
{
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
}

static void wait_for_end(uint32_t slot)
{
	for (int tries = 0; tries < 500 && !launcher_has_ended(&launcher, slot); tries++) {
		(void)fd_wait_readable(launcher.sock, 10);
		CHECK_INT(launcher_listen(&launcher, &err), 0);
	}
	CHECK(launcher_has_ended(&launcher, slot));
}

static void make_image(void)
{
	CHECK_INT(chmod(tmp_path, 0755), 0);
}

TEST(launcher_starts_a_sandbox_and_tells_of_its_end)
{
	int pidfd = -1;

	close(tmp_make());
	make_image();
	begin();
	plan_sandbox();
	if (ask(LAUNCHER_START, 0, &pidfd) < 0)
		END(EXIT_FAILURE, "%s", err.text);
	close_plan();
	CHECK(pidfd >= 0);
	CHECK(reply.layers_held & 1u << LAYER_SECCOMP);
	CHECK_INT(reply.layers_held & reply.layers_absent, 0);
	CHECK(reply.outer_pid > 1);
	/* The agent speaks first. */
	CHECK(fd_wait_readable(streams[0], 5000) > 0);
	CHECK_INT(ask(LAUNCHER_STATS, 0, NULL), 0);
	CHECK_INT(reply.tree.pids, 0);
	/* The slot is taken. */
	plan_sandbox();
	CHECK_INT(ask(LAUNCHER_START, 0, NULL), -EBUSY);
	close_plan();
	CHECK(!launcher_has_ended(&launcher, 0));
	CHECK_INT(ask(LAUNCHER_KILL, 0, NULL), 0);
	wait_for_end(0);
	launcher_forget(&launcher, 0);
	CHECK(!launcher_has_ended(&launcher, 0));
	CHECK_INT(ask(LAUNCHER_STATS, 0, NULL), -ENOENT);
	close(pidfd);
	finish();
	tmp_finish();
}

TEST(launcher_takes_its_sandboxes_with_it)
{
	int pidfd = -1;

	close(tmp_make());
	make_image();
	begin();
	plan_sandbox();
	if (ask(LAUNCHER_START, 0, &pidfd) < 0)
		END(EXIT_FAILURE, "%s", err.text);
	close_plan();
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	CHECK_INT(poll(&p, 1, 0), 0);
	launcher_stop(&launcher);
	CHECK_INT(poll(&p, 1, 2000), 1);
	close(pidfd);
	ids_release(&ids);
	tmp_finish();
}

TEST(launcher_says_which_layer_cannot_be_shown)
{
	close(tmp_make());
	make_image();
	begin();
	plan_sandbox();
	CHECK_INT(warden_create_bind(&plan.create, BIND_TREE, "/proc/none", "/usr", "", &err), 0);
	CHECK(ask(LAUNCHER_START, 0, NULL) < 0);
	CHECK(strstr(err.text, "/proc/none") != NULL);
	close_plan();
	/* And the slot is free. */
	plan_sandbox();
	int pidfd = -1;
	CHECK_INT(ask(LAUNCHER_START, 0, &pidfd), 0);
	close_plan();
	close(pidfd);
	finish();
	tmp_finish();
}

TEST(launcher_removes_below_the_named_directory_only_as_a_user)
{
	int dir = tmp_make();

	begin();
	CHECK_INT(path_make_dirs(dir, "gone/a", 0700), 0);
	snprintf(plan.remove_path, sizeof(plan.remove_path), "%s/gone", tmp_path);
	CHECK_INT(ask(LAUNCHER_REMOVE, 0, NULL), ids.mode == IDS_ROOT ? -EINVAL : 0);
	CHECK_INT(faccessat(dir, "gone", F_OK, 0), ids.mode == IDS_ROOT ? 0 : -1);
	finish();
	close(dir);
	tmp_finish();
}
