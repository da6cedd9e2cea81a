/* SPDX-License-Identifier: Apache-2.0 */
#include "hostlayer.h"

#include "mounts.h"
#include "warden_fixture.h"

#include <dirent.h>

static char path[512];
static int etc, layer;

/* A /etc of our own, over the real one, in a mount namespace that nobody else sees. */
static void enter(void)
{
	enter_namespaces(0);
	int root = open("/", O_PATH | O_DIRECTORY);
	etc = mounts_new("tmpfs", NULL, 0, &err);
	CHECK(etc >= 0);
	CHECK_INT(mounts_attach(etc, root, "etc", &err), 0);
	umask(0);
	CHECK_INT(path_make_dirs(etc, "ssl/certs", 0755), 0);
	make_file(etc, "ssl/certs/ca.pem", "ca", 0644);
	make_file(etc, "ld.so.cache", "cache", 0644);
}

static int open_layer(void)
{
	CHECK_INT(hostlayer_ensure(tmp_path, path, sizeof(path), &err), 0);
	int whole = open(path, O_RDONLY | O_DIRECTORY);
	CHECK_INT(faccessat(whole, "base/etc/passwd", R_OK, 0), 0);
	layer = openat(whole, "root", O_RDONLY | O_DIRECTORY);
	CHECK(layer >= 0);
	close(whole);
	return layer;
}

static bool has(const char *name)
{
	return faccessat(layer, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void with_etc(void (*run)(void))
{
	close(tmp_make());
	in_child(run);
	tmp_finish();
}

static void copies(void)
{
	char text[16];

	enter();
	CHECK_INT(mkdirat(etc, "alternatives", 0755), 0);
	CHECK_INT(symlinkat("/usr/bin/gawk", etc, "alternatives/awk"), 0);
	open_layer();
	CHECK_INT(fd_read_text_at(layer, "etc/ld.so.cache", text, sizeof(text)), 5);
	CHECK(has("etc/ssl/certs/ca.pem"));
	CHECK_INT(readlinkat(layer, "etc/alternatives/awk", text, sizeof(text)), 13);
	CHECK(has("bin") && has("lib"));
}

TEST(hostlayer_copies_what_programs_need)
{
	with_etc(copies);
}

static void leaves_out(void)
{
	enter();
	make_file(etc, "shadow", "x", 0644);
	make_file(etc, "passwd", "x", 0644);
	make_file(etc, "ssl/private.pem", "x", 0644);
	make_file(etc, "ssl/openssl.cnf", "x", 0640);
	make_file(etc, "ssl/certs/key.pem", "x", 0600);
	make_file(etc, "ssl/certs/group.pem", "x", 0660);
	CHECK_INT(mkdirat(etc, "ssl/certs/closed", 0700), 0);
	make_file(etc, "ssl/certs/closed/inner.pem", "x", 0644);
	CHECK_INT(mkfifoat(etc, "ssl/certs/fifo", 0666), 0);
	CHECK_INT(symlinkat("/etc/shadow", etc, "services"), 0);
	open_layer();
	CHECK(has("etc/ssl/certs/ca.pem"));
	CHECK(!has("etc/ssl/certs/key.pem"));
	CHECK(!has("etc/ssl/certs/group.pem"));
	CHECK(!has("etc/ssl/certs/closed"));
	CHECK(!has("etc/ssl/certs/fifo"));
	CHECK(!has("etc/ssl/openssl.cnf"));
	CHECK(!has("etc/ssl/private.pem"));
	CHECK(!has("etc/shadow"));
	CHECK(!has("etc/passwd"));
	/* A link stays a link: it leads to nothing in the sandbox. */
	struct stat st;
	CHECK_INT(fstatat(layer, "etc/services", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK(S_ISLNK(st.st_mode));
}

TEST(hostlayer_copies_nothing_that_others_may_not_read)
{
	with_etc(leaves_out);
}

static void modes(void)
{
	struct stat st;

	enter();
	umask(0077); /* as the warden has it */
	open_layer();
	CHECK_INT(umask(0), 0077);
	static const char *const names[] = { "", "etc", "etc/ssl", "etc/ssl/certs",
					     "etc/ssl/certs/ca.pem" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CHECK_INT(fstatat(layer, names[i], &st, AT_EMPTY_PATH), 0);
		CHECK_INT(st.st_mode & 0777, S_ISDIR(st.st_mode) ? 0755 : 0644);
	}
}

TEST(hostlayer_can_be_read_by_the_sandboxs_user)
{
	with_etc(modes);
}

static void again(void)
{
	char first[512];
	struct stat before, after;

	enter();
	open_layer();
	memcpy(first, path, sizeof(first));
	CHECK_INT(fstat(layer, &before), 0);
	open_layer();
	CHECK_STR(path, first);
	CHECK_INT(fstat(layer, &after), 0);
	CHECK_INT(before.st_ino, after.st_ino);
	make_file(etc, "ld.so.cache", "a new cache", 0644);
	open_layer();
	CHECK(strcmp(path, first) != 0);
	/* Nothing half-made lies beside it. */
	CHECK_INT(chdir(tmp_path), 0);
	auto_closedir DIR *dir = opendir("layers/host");
	int n = 0;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		n += entry->d_name[0] != '.';
	CHECK_INT(n, 2);
}

TEST(hostlayer_is_made_anew_only_when_the_host_changes)
{
	with_etc(again);
}

TEST(hostlayer_says_where_it_could_not_write)
{
	CHECK_INT(hostlayer_ensure("/proc/none", path, sizeof(path), &err), -ENOENT);
	CHECK(strstr(err.text, "/proc/none") != NULL);
	close(tmp_make());
	CHECK_INT(hostlayer_ensure(tmp_path, path, 16, &err), -EINVAL);
	tmp_finish();
}
