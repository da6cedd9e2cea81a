/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include "warden_fixture.h"

#include <dirent.h>
#include <sys/resource.h>

static int top;

static int enter_new(int at, const char *name)
{
	CHECK_INT(mkdirat(at, name, 0700), 0);
	int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(next >= 0);
	return next;
}

static void make_chain(const char *name, int levels)
{
	int at = enter_new(top, name);

	for (int i = 1; i < levels; i++) {
		int next = enter_new(at, "d");
		make_file(at, "f", "x", 0600);
		close(at);
		at = next;
	}
	close(at);
}

static int count_names(int dir)
{
	int n = 0;
	auto_closedir DIR *list = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY));

	CHECK(list != NULL);
	while (readdir(list))
		n++;
	return n - 2;
}

TEST(path_open_in_root_takes_links_as_if_the_tree_were_all)
{
	top = tmp_make();
	CHECK_INT(mkdirat(top, "etc", 0700), 0);
	make_file(top, "etc/passwd", "ours", 0600);
	CHECK_INT(symlinkat("/etc/passwd", top, "link"), 0);
	CHECK_INT(symlinkat("../../../../etc", top, "up"), 0);
	char text[16];
	int fd = path_open_in_root(top, "link", O_RDONLY, 0);
	CHECK_INT(fd_read_text(fd, text, sizeof(text)), 4);
	fd = path_open_in_root(top, "up/passwd", O_RDONLY, 0);
	CHECK_INT(fd_read_text(fd, text, sizeof(text)), 4);
	fd = path_open_in_root(top, "/../etc/passwd", O_RDONLY, 0);
	CHECK_INT(fd_read_text(fd, text, sizeof(text)), 4);
	CHECK_INT(fcntl(fd, F_GETFD), FD_CLOEXEC);
	tmp_finish();
}

TEST(path_open_in_root_follows_no_magic_link)
{
	int proc = open("/proc", O_PATH | O_DIRECTORY);

	top = tmp_make();
	CHECK_INT(path_open_in_root(proc, "self/root/etc", O_PATH, 0), -ELOOP);
	CHECK_INT(path_open_in_root(proc, "self/exe", O_PATH, 0), -ELOOP);
	tmp_finish();
}

TEST(path_open_beneath_follows_nothing_and_stays_below)
{
	top = tmp_make();
	CHECK_INT(mkdirat(top, "a", 0700), 0);
	make_file(top, "a/f", "x", 0600);
	CHECK_INT(symlinkat("a/f", top, "link"), 0);
	CHECK_INT(symlinkat("a", top, "dir"), 0);
	CHECK(path_open_beneath(top, "a/f", O_RDONLY, 0) >= 0);
	CHECK_INT(path_open_beneath(top, "link", O_RDONLY, 0), -ELOOP);
	CHECK_INT(path_open_beneath(top, "dir/f", O_RDONLY, 0), -ELOOP);
	CHECK_INT(path_open_beneath(top, "/etc/passwd", O_RDONLY, 0), -EXDEV);
	CHECK_INT(path_open_beneath(top, "a/../../x", O_RDONLY, 0), -EXDEV);
	int root = open("/", O_PATH | O_DIRECTORY);
	CHECK_INT(path_open_beneath(root, "proc/version", O_RDONLY, 0), -EXDEV); /* a mount */
	tmp_finish();
}

TEST(path_open_beneath_creates_with_the_mode)
{
	struct stat st;

	top = tmp_make();
	umask(0);
	CHECK(path_open_beneath(top, "f", O_WRONLY | O_CREAT | O_EXCL, 0640) >= 0);
	CHECK_INT(fstatat(top, "f", &st, 0), 0);
	CHECK_INT(st.st_mode, S_IFREG | 0640);
	CHECK_INT(path_open_beneath(top, "f", O_WRONLY | O_CREAT | O_EXCL, 0640), -EEXIST);
	tmp_finish();
}

TEST(path_make_dirs_makes_all_of_them_and_follows_no_link)
{
	struct stat st;
	char longer[5000];

	top = tmp_make();
	CHECK_INT(path_make_dirs(top, "a//b/c/", 0755), 0);
	CHECK_INT(path_make_dirs(top, "a/b/c", 0755), 0);
	CHECK_INT(fstatat(top, "a/b/c", &st, 0), 0);
	CHECK_INT(mkdirat(top, "other", 0755), 0);
	CHECK_INT(symlinkat("other", top, "link"), 0);
	CHECK_INT(path_make_dirs(top, "link/x", 0755), -ELOOP);
	CHECK_INT(path_make_dirs(top, "../x", 0755), -EXDEV);
	make_file(top, "file", "", 0600);
	CHECK_INT(path_make_dirs(top, "file/x", 0755), -ENOTDIR);
	CHECK_INT(fstatat(top, "other/x", &st, 0), -1);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CHECK_INT(path_make_dirs(top, longer, 0755), -ENAMETOOLONG);
	tmp_finish();
}

TEST(path_remove_tree_removes_what_is_there)
{
	top = tmp_make();
	CHECK_INT(path_remove_tree(top, "none"), 0);
	make_file(top, "f", "x", 0);
	CHECK_INT(path_remove_tree(top, "f"), 0);
	CHECK_INT(mkdirat(top, "empty", 0), 0);
	CHECK_INT(path_remove_tree(top, "empty"), 0);
	CHECK_INT(path_make_dirs(top, "t/a/b", 0755), 0);
	make_file(top, "t/a/f", "x", 0);
	CHECK_INT(mkfifoat(top, "t/fifo", 0600), 0);
	CHECK_INT(path_remove_tree(top, "t"), 0);
	CHECK_INT(count_names(top), 0);
	tmp_finish();
}

TEST(path_remove_tree_never_follows_a_link)
{
	top = tmp_make();
	CHECK_INT(path_make_dirs(top, "keep/dir", 0755), 0);
	make_file(top, "keep/dir/f", "x", 0600);
	CHECK_INT(path_make_dirs(top, "t/a", 0755), 0);
	CHECK_INT(symlinkat("../keep", top, "t/up"), 0);
	CHECK_INT(symlinkat("../../keep/dir", top, "t/a/up"), 0);
	CHECK_INT(symlinkat("keep", top, "link"), 0);
	CHECK_INT(path_remove_tree(top, "t"), 0);
	CHECK_INT(path_remove_tree(top, "link"), 0);
	CHECK_INT(faccessat(top, "keep/dir/f", F_OK, 0), 0);
	CHECK_INT(count_names(top), 1);
	tmp_finish();
}

TEST(path_remove_tree_removes_5000_levels_with_few_descriptors)
{
	struct rlimit few = { 100, 100 };

	top = tmp_make();
	make_chain("deep", 5000);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &few), 0);
	CHECK_INT(path_remove_tree(top, "deep"), 0);
	CHECK_INT(count_names(top), 0);
	tmp_finish();
}

/* From the bottom up, since nobody can pass a directory of mode 0. */
static void close_chain(const char *name)
{
	int at = openat(top, name, O_RDONLY | O_DIRECTORY);

	for (int next; (next = openat(at, "d", O_RDONLY | O_DIRECTORY)) >= 0; at = next)
		close(at);
	for (;;) {
		struct stat here, end;
		CHECK_INT(fstat(at, &here), 0);
		int up = openat(at, "..", O_RDONLY | O_DIRECTORY);
		CHECK_INT(fchmod(at, 0), 0);
		close(at);
		at = up;
		CHECK(fstat(at, &here) == 0 && fstat(top, &end) == 0);
		if (here.st_ino == end.st_ino)
			return;
	}
}

/* As an ordinary user: root passes everywhere. */
static void become_nobody(void)
{
	if (is_root()) {
		CHECK_INT(fchown(top, 65534, 65534), 0);
		CHECK_INT(setegid(65534), 0);
		CHECK_INT(seteuid(65534), 0);
	}
}

TEST(path_remove_tree_removes_closed_directories)
{
	top = tmp_make();
	become_nobody();
	make_chain("closed", 3);
	make_chain("inner", 3);
	close_chain("closed");
	close_chain("inner");
	CHECK_INT(openat(top, "closed", O_RDONLY), -1);
	CHECK_INT(path_remove_tree(top, "closed"), 0);
	CHECK_INT(fchmodat(top, "inner", 0500, 0), 0);
	CHECK_INT(path_remove_tree(top, "inner"), 0);
	CHECK_INT(count_names(top), 0);
	(void)!seteuid(getuid());
	tmp_finish();
}

TEST(path_remove_tree_removes_a_deep_closed_tree_with_few_descriptors)
{
	struct rlimit few = { 100, 100 };

	top = tmp_make();
	become_nobody();
	make_chain("deep", 400);
	close_chain("deep");
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &few), 0);
	CHECK_INT(path_remove_tree(top, "deep"), 0);
	CHECK_INT(count_names(top), 0);
	(void)!seteuid(getuid());
	tmp_finish();
}

static void remove_around_a_mount(void)
{
	char path[64];

	enter_namespaces(0);
	top = open(tmp_path, O_RDONLY | O_DIRECTORY);
	CHECK_INT(path_make_dirs(top, "t/a/mnt", 0755), 0);
	CHECK_INT(path_make_dirs(top, "t/z", 0755), 0);
	snprintf(path, sizeof(path), "%s/t/a/mnt", tmp_path);
	CHECK_INT(sys_mount("tmpfs", path, "tmpfs", 0, NULL), 0);
	make_file(top, "t/a/mnt/keep", "x", 0600);
	make_file(top, "t/a/gone", "x", 0600);
	CHECK(path_remove_tree(top, "t") < 0);
	CHECK_INT(faccessat(top, "t/a/mnt/keep", F_OK, 0), 0);
	CHECK_INT(faccessat(top, "t/a/gone", F_OK, 0), -1); /* all that can go is gone */
	CHECK_INT(faccessat(top, "t/z", F_OK, 0), -1);
}

TEST(path_remove_tree_crosses_no_mount_and_goes_on_after_it)
{
	top = tmp_make();
	in_child(remove_around_a_mount);
	tmp_finish();
}

TEST(path_is_name_takes_single_names_only)
{
	static const char *const bad[] = { "", ".", "..", "/", "a/b", "/a", "a/" };
	static const char *const good[] = { "a", "...", ".a", "a b", "\xff" };
	char longer[257];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!path_is_name(bad[i]));
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK(path_is_name(good[i]));
	memset(longer, 'x', 256);
	longer[256] = '\0';
	CHECK(!path_is_name(longer));
	longer[255] = '\0';
	CHECK(path_is_name(longer));
}
