/* SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

#include "agent_bytes.h"
#include "landlock.h"
#include "outer_fixture.h"
#include "rlimits.h"

#include <linux/memfd.h>
#include <sys/socket.h>

#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

static struct inside inside;
static char first_net[64];
static pid_t jail;
static uint32_t held, absent;

static int make_agent(void)
{
	char path[32];
	int fd = sys_memfd_create("agent", MFD_CLOEXEC);

	CHECK_INT(fd_write_all(fd, agent_bytes, (size_t)(agent_bytes_end - agent_bytes)), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int ro = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(ro >= 0);
	close(fd);
	return ro;
}

static void plan_jail(void)
{
	int streams[2], sockets[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, streams), 0);
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	CHECK(readlinkat(proc_fd, "self/ns/net", first_net, sizeof(first_net) - 1) > 0);
	inside = (struct inside){
		.root = plain_root(),
		.is_root_mapped = ids.mode != IDS_SINGLE,
		.may_set_groups = ids.mode != IDS_SINGLE,
		.landlock_abi = landlock_abi(),
		.stream_fd = streams[1],
		.handover_fd = sockets[1],
		.agent_fd = make_agent(),
		.user = 1000,
	};
	inside.n_rlimits = rlimits_plan(&plan.create.limits, false, false, inside.rlimits);
}

/* Starts the agent in what `inside` says, with the namespaces of flags; waits until it runs. */
static void start(uint64_t flags)
{
	struct sys_clone_args args = { .flags = flags, .exit_signal = SIGCHLD };
	int sync[2], status[2];
	struct err said;

	CHECK(pipe2(sync, O_CLOEXEC) == 0 && pipe2(status, O_CLOEXEC) == 0);
	inside.sync_fd = sync[0];
	inside.status_fd = status[1];
	jail = sys_clone3(&args);
	if (jail == 0) {
		close(sync[1]);
		inside_main(&inside);
	}
	CHECK(jail > 0);
	close(status[1]);
	if (flags & CLONE_NEWUSER)
		CHECK_INT(ids_map_sandbox(&ids, 0, false, proc_fd, jail, &err), 0);
	CHECK_INT(write(sync[1], "g", 1), 1);
	ssize_t n = fd_read_exact(status[0], &said, sizeof(said));
	if (n != 0)
		END(EXIT_FAILURE, "%s", n > 0 ? said.text : "died");
}

static int verify(void)
{
	int r = verify_sandbox(proc_fd, jail, first_net, &ids, &plan, &inside, &held, &absent,
			       &err);

	kill(jail, SIGKILL);
	waitpid(jail, NULL, 0);
	return r;
}

/* It must fail, and name the layer. */
static void must_miss(unsigned layer)
{
	char want[64];

	CHECK_INT(verify(), -EPERM);
	CHECK_INT(err.kind, ERR_SETUP);
	snprintf(want, sizeof(want), "layer '%s' does not hold: ", layer_name(layer));
	if (strncmp(err.text, want, strlen(want)) != 0)
		END(EXIT_FAILURE, "%s, want %s", err.text, layer_name(layer));
}

static void all_layers(void)
{
	plan_jail();
	CHECK_INT(outer_new_network(&err), 0);
	start(NAMESPACES);
	if (verify() < 0)
		END(EXIT_FAILURE, "%s", err.text);
	uint32_t want = 1u << LAYER_CGROUP; /* none was given */
	if (!inside.landlock_abi)
		want |= 1u << LAYER_LANDLOCK;
	if (ids.mode == IDS_SINGLE)
		want |= 1u << LAYER_UIDS;
	CHECK_INT(absent, want);
	CHECK_INT(held, ((1u << LAYERS_) - 1) & ~want);
}

TEST(verify_finds_every_layer_of_a_whole_sandbox)
{
	in_outer(all_layers);
}

/* One layer is left out behind its back. */
static uint32_t left_out;
static unsigned missing;

static void without_layer(void)
{
	plan_jail();
	CHECK_INT(outer_new_network(&err), 0);
	inside.without = left_out;
	start(NAMESPACES);
	must_miss(missing);
}

TEST(verify_misses_the_system_call_filter)
{
	left_out = WITHOUT_SECCOMP;
	missing = LAYER_SECCOMP;
	in_outer(without_layer);
}

TEST(verify_misses_dropped_capabilities)
{
	left_out = WITHOUT_CAPS;
	missing = LAYER_CAPS;
	in_outer(without_layer);
}

TEST(verify_misses_rlimits)
{
	left_out = WITHOUT_RLIMITS;
	missing = LAYER_RLIMITS;
	in_outer(without_layer);
}

static void without_ipc(void)
{
	plan_jail();
	CHECK_INT(outer_new_network(&err), 0);
	start(NAMESPACES & ~CLONE_NEWIPC);
	must_miss(LAYER_IPC_NS);
}

TEST(verify_misses_an_ipc_namespace)
{
	in_outer(without_ipc);
}

static void without_network(void)
{
	plan_jail();
	start(NAMESPACES);
	must_miss(LAYER_NET_NS);
}

TEST(verify_misses_a_network_namespace)
{
	in_outer(without_network);
}

/* A child of the launcher that was never jailed at all. */
static void plain_child(void)
{
	plan_jail();
	jail = fork();
	if (jail == 0)
		for (;;)
			pause();
	if (missing == LAYER_PID_NS)
		plan.without = WITHOUT_USERNS; /* the next one that is looked at */
	must_miss(missing);
}

TEST(verify_misses_a_user_namespace)
{
	missing = LAYER_USER_NS;
	in_outer(plain_child);
}

TEST(verify_misses_a_pid_namespace)
{
	missing = LAYER_PID_NS;
	in_outer(plain_child);
}

static void other_uids(void)
{
	plan_jail();
	CHECK_INT(outer_new_network(&err), 0);
	start(NAMESPACES);
	ids.slot_size++; /* another map is expected */
	must_miss(LAYER_USER_NS);
}

static void other_user(void)
{
	plan_jail();
	CHECK_INT(outer_new_network(&err), 0);
	inside.user = 1001;
	start(NAMESPACES);
	must_miss(LAYER_UIDS);
}

static void need_ranges(void)
{
	CHECK_INT(ids_lease(&ids, 1, &err), 0);
	ids_release(&ids);
	if (ids.mode == IDS_SINGLE)
		SKIP("this user has one uid");
}

TEST(verify_misses_the_right_map)
{
	need_ranges();
	in_outer(other_uids);
}

TEST(verify_misses_the_right_user)
{
	need_ranges();
	in_outer(other_user);
}

static void foreign_mount(void)
{
	plan_jail();
	CHECK_INT(outer_new_network(&err), 0);
	start(NAMESPACES);
	inside.root.n_masks--; /* one mount more than is known */
	must_miss(LAYER_ROOT);
	CHECK(strstr(err.text, "an unknown mount") != NULL);
}

TEST(verify_finds_a_mount_that_nobody_made)
{
	in_outer(foreign_mount);
}

static void lost_mount(void)
{
	plan_jail();
	CHECK_INT(outer_new_network(&err), 0);
	inside.root.n_masks--;
	start(NAMESPACES);
	inside.root.n_masks++;
	must_miss(LAYER_ROOT);
	CHECK(strstr(err.text, "a missing mount") != NULL);
}

TEST(verify_misses_a_mask_of_proc)
{
	in_outer(lost_mount);
}

static void open_root(void)
{
	plan_jail();
	CHECK_INT(outer_new_network(&err), 0);
	inside.root.bare = true;
	inside.root.n_masks = 0;
	start(NAMESPACES);
	inside.root.bare = false;
	must_miss(LAYER_ROOT);
	CHECK(strstr(err.text, "/dev is") != NULL); /* it is not read-only */
}

TEST(verify_misses_a_read_only_flag)
{
	in_outer(open_root);
}

static void higher_limit(void)
{
	plan_jail();
	CHECK_INT(outer_new_network(&err), 0);
	for (int i = 0; i < inside.n_rlimits; i++)
		if (inside.rlimits[i].resource == RLIMIT_NPROC)
			inside.rlimits[i].value++;
	start(NAMESPACES);
	for (int i = 0; i < inside.n_rlimits; i++)
		if (inside.rlimits[i].resource == RLIMIT_NPROC)
			inside.rlimits[i].value--;
	must_miss(LAYER_RLIMITS);
}

TEST(verify_misses_a_limit_that_is_one_too_high)
{
	in_outer(higher_limit);
}

static void nobody_there(void)
{
	plan_jail();
	jail = 4242;
	CHECK_INT(verify_sandbox(proc_fd, jail, first_net, &ids, &plan, &inside, &held, &absent,
				 &err),
		  -EPERM);
	/* A directory that only looks like it is not the kernel's word. */
	CHECK_INT(mkdir("/t/4242", 0755), 0);
	int fake = open("/t", O_RDONLY | O_DIRECTORY);
	CHECK_INT(verify_sandbox(fake, jail, first_net, &ids, &plan, &inside, &held, &absent, &err),
		  -EPERM);
	CHECK_STR(err.text, "the agent is not in the launcher's /proc");
}

TEST(verify_believes_only_procfs)
{
	in_outer(nobody_there);
}
