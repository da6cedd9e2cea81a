/* SPDX-License-Identifier: Apache-2.0 */
#include "deliver.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "receipt/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static struct err err;
static int dir;

static void make_dir(void)
{
	static char path[] = "/tmp/cay-deliver-XXXXXX";

	CHECK(mkdtemp(path) != NULL);
	CHECK(chdir(path) == 0);
	dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir >= 0);
}

static void remove_dir(void)
{
	char path[64];

	CHECK(getcwd(path, sizeof(path)) != NULL);
	CHECK(strncmp(path, "/tmp/cay-deliver-", 17) == 0);
	DIR *d = opendir(".");
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		(void)unlink(e->d_name);
	closedir(d);
	(void)unlink("sub/x");
	(void)rmdir("sub");
	CHECK(rmdir(path) == 0);
}

static int deliver(const char *path, const char *text, bool force, uint32_t mode)
{
	struct delivery d;
	char sha256[DIGEST_HEX_SIZE];

	digest_of(text, strlen(text), sha256);
	int r = deliver_begin(&d, dir, path, force, &err);
	if (r >= 0)
		r = deliver_write(&d, text, strlen(text), &err);
	if (r >= 0)
		r = deliver_commit(&d, mode, sha256, &err);
	deliver_finish(&d);
	return r;
}

static void check_file(const char *path, const char *want)
{
	char text[64];

	CHECK(fd_read_text_at(AT_FDCWD, path, text, sizeof(text)) >= 0);
	CHECK_STR(text, want);
}

static size_t count_names(void)
{
	size_t n = 0;
	DIR *d = opendir(".");

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

TEST(deliver_writes_a_new_file_with_plain_bits)
{
	struct stat st;

	make_dir();
	umask(022);
	CHECK_INT(deliver("a", "one", false, 06777), 0);
	check_file("a", "one");
	CHECK(stat("a", &st) == 0);
	CHECK_INT(st.st_mode & 07777, 0755);
	CHECK_INT(count_names(), 1);
	remove_dir();
}

TEST(deliver_never_replaces_without_force)
{
	make_dir();
	CHECK_INT(deliver("a", "one", false, 0644), 0);
	CHECK(deliver("a", "two", false, 0644) < 0);
	CHECK(strstr(err.text, "--force") != NULL);
	check_file("a", "one");
	CHECK_INT(deliver("a", "one", false, 0644), 0);
	CHECK_INT(deliver("a", "two", true, 0644), 0);
	check_file("a", "two");
	CHECK_INT(count_names(), 1);
	remove_dir();
}

TEST(deliver_never_writes_through_a_symlink)
{
	make_dir();
	CHECK(mkdir("sub", 0755) == 0);
	CHECK(symlink("sub/x", "link") == 0);
	CHECK(symlink("/tmp", "folder") == 0);
	CHECK(deliver("link", "evil", false, 0644) < 0);
	CHECK_INT(access("sub/x", F_OK), -1);
	CHECK(deliver("folder/cay-deliver-evil", "evil", true, 0644) < 0);
	CHECK_INT(access("/tmp/cay-deliver-evil", F_OK), -1);
	/* With force the link itself goes, not what it points to. */
	CHECK_INT(deliver("link", "fine", true, 0644), 0);
	CHECK_INT(access("sub/x", F_OK), -1);
	check_file("link", "fine");
	remove_dir();
}

TEST(deliver_cannot_leave_the_folder)
{
	make_dir();
	CHECK(deliver("../cay-deliver-evil", "evil", true, 0644) < 0);
	CHECK(deliver("/tmp/cay-deliver-evil", "evil", true, 0644) < 0);
	CHECK_INT(access("/tmp/cay-deliver-evil", F_OK), -1);
	remove_dir();
}

TEST(deliver_makes_folders)
{
	make_dir();
	CHECK_INT(deliver("sub/x", "deep", false, 0644), 0);
	check_file("sub/x", "deep");
	remove_dir();
}

TEST(deliver_leaves_holes_where_zeros_are)
{
	static char data[3 * 65536 + 5];
	char sha256[DIGEST_HEX_SIZE], there[DIGEST_HEX_SIZE];
	struct delivery d;
	struct stat st;
	uint64_t bytes;

	make_dir();
	data[65536 + 7] = 'x';
	digest_of(data, sizeof(data), sha256);
	CHECK_INT(deliver_begin(&d, dir, "holes", false, &err), 0);
	/* Pieces need not be blocks. */
	CHECK_INT(deliver_write(&d, data, 65536 - 8, &err), 0);
	CHECK_INT(deliver_write(&d, data, 8, &err), 8);
	CHECK_INT(deliver_write(&d, data + 65536, sizeof(data) - 65536 - 5, &err), 65536);
	CHECK_INT(deliver_write(&d, data, 5, &err), 5);
	CHECK_INT(deliver_commit(&d, 0644, sha256, &err), 0);
	deliver_finish(&d);
	auto_close int fd = open("holes", O_RDONLY | O_CLOEXEC);
	CHECK_INT(digest_of_fd(fd, there, &bytes), 0);
	CHECK_STR(there, sha256);
	CHECK(fstat(fd, &st) == 0 && st.st_blocks * 512 < (long)sizeof(data));
	remove_dir();
}

TEST(deliver_ends_with_a_hole)
{
	static char data[65536];
	char sha256[DIGEST_HEX_SIZE];
	struct delivery d;
	struct stat st;

	make_dir();
	digest_of(data, sizeof(data), sha256);
	CHECK_INT(deliver_begin(&d, dir, "hole", false, &err), 0);
	CHECK_INT(deliver_write(&d, data, sizeof(data), &err), 0);
	CHECK_INT(deliver_commit(&d, 0644, sha256, &err), 0);
	deliver_finish(&d);
	CHECK(stat("hole", &st) == 0 && st.st_size == (long)sizeof(data));
	remove_dir();
}

TEST(deliver_without_commit_leaves_nothing)
{
	struct delivery d;

	make_dir();
	CHECK_INT(deliver_begin(&d, dir, "a", false, &err), 0);
	CHECK_INT(deliver_write(&d, "half", 4, &err), 4);
	deliver_finish(&d);
	CHECK_INT(count_names(), 0);
	remove_dir();
}

TEST(deliver_a_folder_of_that_name_stays)
{
	make_dir();
	CHECK(mkdir("sub", 0755) == 0);
	CHECK(deliver("sub", "x", false, 0644) < 0);
	CHECK(deliver("sub", "x", true, 0644) < 0);
	CHECK_INT(count_names(), 1);
	remove_dir();
}
