/* SPDX-License-Identifier: Apache-2.0 */
#include "jailroot.h"

#include "outer_fixture.h"

#include <dirent.h>
#include <sys/sysmacros.h>

static struct jail_root root;

static void enter(void)
{
	if (jailroot_enter(&root, &err) < 0)
		END(EXIT_FAILURE, "%s", err.text);
}

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Mount points of this namespace that are not expected, or expected and not there. */
static void compare_mounts(void)
{
	static struct jail_mount expected[JAIL_MOUNTS_MAX];
	static char text[131072];
	unsigned n = jailroot_expect(&root, expected), seen = 0;
	char *save = NULL;

	CHECK(n <= JAIL_MOUNTS_MAX);
	CHECK(fd_read_text_at(AT_FDCWD, "/proc/self/mountinfo", text, sizeof(text)) > 0);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char point[512], options[256];
		CHECK_INT(sscanf(line, "%*d %*d %*s %*s %511s %255s", point, options), 2);
		unsigned i = 0;
		while (i < n && strcmp(expected[i].point, point) != 0)
			i++;
		if (i == n)
			END(EXIT_FAILURE, "'%s' is not expected", point);
		if (expected[i].read_only != (strncmp(options, "ro", 2) == 0) && i > 0)
			END(EXIT_FAILURE, "'%s' is '%s'", point, options);
		CHECK(strstr(options, "nosuid") != NULL);
		CHECK(expected[i].devices || strstr(options, "nodev"));
		seen++;
	}
	CHECK_INT(seen, n);
}

static void mounts_are_as_expected(void)
{
	root = plain_root();
	enter();
	compare_mounts();
}

TEST(jailroot_has_exactly_the_mounts_that_it_expects)
{
	in_outer(mounts_are_as_expected);
}

static void nothing_of_the_host(void)
{
	static const char *const known[] = { ".cay", "dev", "etc", "home",      "opt",
					     "proc", "tmp", "usr", "workspace", NULL };

	root = plain_root();
	enter();
	auto_closedir DIR *dir = opendir("/");
	CHECK(dir != NULL);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		int i = 0;
		if (entry->d_name[0] == '.' && strcmp(entry->d_name, ".cay") != 0)
			continue;
		while (known[i] && strcmp(known[i], entry->d_name) != 0)
			i++;
		if (!known[i])
			END(EXIT_FAILURE, "'/%s' is there", entry->d_name);
	}
	CHECK_INT(try_open("/host", O_PATH), ENOENT);
	CHECK_INT(try_open("/../host", O_PATH), ENOENT);
	CHECK_INT(try_open("/sys", O_PATH), ENOENT);
	CHECK_INT(try_open("/l", O_PATH), ENOENT);
}

TEST(jailroot_shows_nothing_of_the_host_or_of_the_outer_root)
{
	in_outer(nothing_of_the_host);
}

static void root_is_read_only(void)
{
	static const char *const places[] = { "/x",     "/etc/x",  "/usr/x", "/.cay/x",
					      "/dev/x", "/home/x", "/opt/x", "/workspace/x" };

	root = plain_root();
	enter();
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		CHECK_INT(try_open(places[i], O_WRONLY | O_CREAT), EROFS);
	CHECK_INT(try_open("/etc/passwd", O_WRONLY), EROFS);
	CHECK_INT(try_open("/tmp/x", O_WRONLY | O_CREAT), 0);
	CHECK_INT(try_open("/dev/shm/x", O_WRONLY | O_CREAT), 0);
	CHECK_INT(try_open("/dev/null", O_WRONLY), 0);
}

TEST(jailroot_can_be_written_in_tmp_and_shm_only)
{
	in_outer(root_is_read_only);
}

static uint64_t fill(const char *path)
{
	static char block[65536];
	uint64_t sum = 0;
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	CHECK(fd >= 0);
	for (ssize_t n; (n = write(fd, block, sizeof(block))) > 0;)
		sum += (uint64_t)n;
	CHECK_INT(errno, ENOSPC);
	return sum;
}

static void tmpfs_end(void)
{
	char path[32];
	int n = 0;

	plan.create.limits.tmp_bytes = 1u << 20;
	plan.create.limits.shm_bytes = 512u << 10;
	root = plain_root();
	enter();
	CHECK_INT(fill("/tmp/f"), 1u << 20);
	CHECK_INT(fill("/dev/shm/f"), 512u << 10);
	for (;; n++) {
		snprintf(path, sizeof(path), "/tmp/%d", n);
		if (try_open(path, O_WRONLY | O_CREAT) != 0)
			break;
	}
	CHECK(n < (1 << 20) / 4096 + 64); /* empty files cost memory too */
}

TEST(jailroot_bounds_tmp_and_shm_in_bytes_and_files)
{
	in_outer(tmpfs_end);
}

static void proc_is_masked(void)
{
	char text[65536];

	root = plain_root();
	enter();
	CHECK(fd_read_text_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) > 0);
	CHECK(strncmp(text, "MemTotal:         262144 kB\n", 28) == 0);
	for (int i = 0; i < n_masks; i++) {
		snprintf(text, sizeof(text), "/proc/%s", masks[i].name);
		CHECK_INT(try_open(text, O_WRONLY | O_NONBLOCK),
			  strcmp(masks[i].source, "none") == 0 || strcmp(masks[i].name, "sys") == 0
				  ? EISDIR
				  : EROFS);
		if (strcmp(masks[i].source, "empty") == 0)
			CHECK_INT(fd_read_text_at(AT_FDCWD, text, text, 64), 0);
	}
	CHECK_INT(try_open("/proc/sys/kernel/core_pattern", O_RDONLY), ENOENT);
	CHECK_INT(try_open("/proc/sys/kernel/hostname", O_WRONLY), EROFS);
	CHECK_INT(try_open("/proc/self/status", O_RDONLY), 0);
}

TEST(jailroot_masks_proc)
{
	in_outer(proc_is_masked);
}

static void inputs_and_workspace(void)
{
	struct mount_option options[] = { { "mode", "755" }, { 0 } };
	int files = mounts_new("tmpfs", options, 0, &err);

	make_file(files, "data", "123", 0444);
	root = plain_root();
	root.workspace_fd =
		mounts_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &err);
	root.scratch = true;
	root.n_inputs = 1;
	/* A tmpfs that hangs nowhere cannot be cloned from. */
	CHECK_INT(mkdir("/in", 0755), 0);
	CHECK_INT(mounts_attach(files, AT_FDCWD, "in", &err), 0);
	root.inputs[0] = (struct jail_input){
		.fd = mounts_clone(AT_FDCWD, "/in/data",
				   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &err),
		.name = "data.csv",
	};
	CHECK(root.inputs[0].fd >= 0);
	enter();
	compare_mounts();
	char text[8];
	CHECK_INT(fd_read_text_at(AT_FDCWD, "/workspace/input/data.csv", text, sizeof(text)), 3);
	CHECK_INT(try_open("/workspace/input/data.csv", O_WRONLY), EROFS);
	CHECK_INT(try_open("/workspace/input/new", O_WRONLY | O_CREAT), EROFS);
	CHECK_INT(unlink("/workspace/input/data.csv"), -1);
	CHECK_INT(try_open("/workspace/new", O_WRONLY | O_CREAT), 0);
	CHECK_INT(try_open("/home/user/new", O_RDONLY), 0);
}

TEST(jailroot_shows_inputs_read_only_in_the_workspace)
{
	in_outer(inputs_and_workspace);
}

static void trees(void)
{
	root = plain_root();
	CHECK(mkdir("/l/1", 0755) == 0 && mkdir("/l/2", 0755) == 0);
	make_file(AT_FDCWD, "/l/1/both", "lower", 0644);
	make_file(AT_FDCWD, "/l/2/both", "over", 0644);
	root.n_trees = 1;
	root.trees[0] = (struct jail_tree){ .lower = "/l/1", .over = "/l/2", .target = "/usr" };
	enter();
	compare_mounts();
	char text[8];
	CHECK_INT(fd_read_text_at(AT_FDCWD, "/usr/both", text, sizeof(text)), 4);
	CHECK_INT(try_open("/usr/both", O_WRONLY), EROFS);
}

TEST(jailroot_lays_a_layer_over_a_tree)
{
	in_outer(trees);
}

static void tree_without_a_place(void)
{
	root = plain_root();
	root.n_trees = 1;
	root.trees[0] = (struct jail_tree){ .lower = "/l/0", .target = "/opt/cay/none" };
	CHECK_INT(jailroot_enter(&root, &err), -ENOENT);
	CHECK(strstr(err.text, "show '/opt/cay/none'") != NULL);
}

TEST(jailroot_says_which_tree_has_no_place)
{
	in_outer(tree_without_a_place);
}

TEST(jailroot_dev_of_root_has_nodes_of_its_own)
{
	static const struct {
		const char *name;
		unsigned major_nr, minor_nr;
	} nodes[] = { { "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
		      { "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 } };
	struct stat st;

	if (!is_root())
		SKIP("needs root");
	umask(0077);
	int dev = jailroot_make_dev(&err);
	CHECK(dev >= 0);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		CHECK_INT(fstatat(dev, nodes[i].name, &st, 0), 0);
		CHECK_INT(st.st_mode, S_IFCHR | 0666);
		CHECK_INT(st.st_rdev, makedev(nodes[i].major_nr, nodes[i].minor_nr));
	}
	CHECK_INT(umask(0), 0077);
	int null = openat(dev, "null", O_RDWR);
	CHECK_INT(write(null, "x", 1), 1);
	struct stat hosts;
	CHECK_INT(stat("/dev/null", &hosts), 0);
	CHECK_INT(fstat(null, &st), 0);
	CHECK(st.st_dev != hosts.st_dev); /* locks on it are nobody else's */
	close(null);
	close(dev);
}

TEST(jailroot_expect_knows_a_bare_root)
{
	static struct jail_mount mounts[JAIL_MOUNTS_MAX];
	struct jail_root bare = { .dev_fd = 5, .workspace_fd = -1, .masks = masks, .n_masks = 3 };
	unsigned all = jailroot_expect(&bare, mounts);

	CHECK_STR(mounts[0].point, "/");
	CHECK(mounts[0].read_only);
	bare.bare = true;
	CHECK_INT(jailroot_expect(&bare, mounts), all - 3);
	bare.dev_fd = -1;
	CHECK_INT(jailroot_expect(&bare, mounts), all - 3 + 6);
}
