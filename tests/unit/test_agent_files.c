/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's files, cgroup descriptors and seccomp listener, with hostile trees and a real filter.
 */
#include "agent_client.h"

#include "base/auto.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define PLENTY (1u << 30)

static struct client client;
static uint8_t payload[FRAME_PAYLOAD_MAX];

static void start(void)
{
	if (client_start(&client, NULL, NULL) < 0)
		SKIP("needs a pid namespace");
	CHECK_INT(client_next(&client)->type, AGENT_HELLO);
}

static void ask_read(const char *path, uint64_t offset, uint64_t length, uint32_t credit)
{
	struct pack pack = { .data = payload, .size = sizeof(payload) };

	pack_text(&pack, path);
	pack_u64(&pack, offset);
	pack_u64(&pack, length);
	client_send(&client, AGENT_READ, 1, payload, pack.len);
	client_credit(&client, 1, credit);
}

static const struct err *refused(void)
{
	const struct agent_message *m = client_next(&client);

	CHECK_INT(m->type, AGENT_FAILED);
	CHECK_INT(m->channel, 1);
	return &m->failed;
}

static const char *read_whole(const char *path, uint64_t offset, uint64_t length)
{
	ask_read(path, offset, length, PLENTY);
	CHECK_INT(client_next(&client)->type, AGENT_FILE);
	client_finish(&client, 1);
	return client.out;
}

TEST(files_read_takes_a_file_and_a_part_of_it)
{
	start();
	client_make_file("/tmp/x", "0123456789", 0640);
	ask_read("/tmp/x", 0, 0, PLENTY);
	const struct agent_message *m = client_next(&client);
	CHECK_INT(m->type, AGENT_FILE);
	CHECK_INT(m->file.size, 10);
	CHECK_INT(m->file.mode, 0640);
	client_finish(&client, 1);
	CHECK_STR(client.out, "0123456789");
	CHECK_INT(client.message.done.bytes, 10);
	CHECK_STR(read_whole("tmp/x", 3, 4), "3456");
	CHECK_STR(read_whole("/tmp/x", 8, 100), "89");
	CHECK_STR(read_whole("/tmp/x", 100, 0), "");
	CHECK_STR(read_whole("/tmp/../tmp/x", 9, 0), "9");
}

TEST(files_read_spends_credit)
{
	start();
	client_make_file("/tmp/x", "0123456789", 0644);
	ask_read("/tmp/x", 0, 0, 4);
	CHECK_INT(client_next(&client)->type, AGENT_FILE);
	CHECK_INT(client_next(&client)->data.len, 4);
	CHECK(client_is_silent(&client, 100));
	client_credit(&client, 1, 6);
	CHECK_INT(client_next(&client)->data.len, 6);
	CHECK_INT(client_next(&client)->type, AGENT_DONE);
}

TEST(files_read_refuses_all_but_regular_files)
{
	start();
	CHECK_INT(mkfifo("/tmp/fifo", 0644), 0);
	ask_read("/tmp/fifo", 0, 0, PLENTY);
	CHECK_INT(refused()->kind, ERR_INVALID);
	ask_read("/tmp", 0, 0, PLENTY);
	CHECK_INT(refused()->kind, ERR_INVALID);
	ask_read("/dev/zero", 0, 0, PLENTY);
	CHECK_INT(refused()->kind, ERR_INVALID);
	ask_read("/tmp/none", 0, 0, PLENTY);
	CHECK_INT(refused()->kind, ERR_NOT_FOUND);
	ask_read("", 0, 0, PLENTY);
	CHECK_INT(refused()->kind, ERR_INVALID);
}

TEST(files_read_never_follows_a_symlink)
{
	start();
	client_make_file("/tmp/x", "secret", 0644);
	CHECK_INT(mkdir("/tmp/d", 0755), 0);
	client_make_file("/tmp/d/x", "secret", 0644);
	CHECK_INT(symlink("x", "/tmp/link"), 0);
	CHECK_INT(symlink("d", "/tmp/dirlink"), 0);
	ask_read("/tmp/link", 0, 0, PLENTY);
	CHECK_INT(refused()->errnum, ELOOP);
	ask_read("/tmp/dirlink/x", 0, 0, PLENTY);
	CHECK_INT(refused()->errnum, ELOOP);
	ask_read("/proc/self/root/tmp/x", 0, 0, PLENTY);
	CHECK_INT(refused()->errnum, ELOOP);
}

TEST(files_read_of_a_growing_file_ends)
{
	start();
	client_make_file("/tmp/x", "0123456789", 0644);
	ask_read("/tmp/x", 0, 0, 5);
	CHECK_INT(client_next(&client)->type, AGENT_FILE);
	CHECK_INT(client_next(&client)->data.len, 5);
	client_make_file("/tmp/x", "0123456789 and more and more", 0644);
	client_credit(&client, 1, PLENTY);
	client_finish(&client, 1);
	CHECK_STR(client.out, "56789");
}

static void ask_write(const char *path, uint32_t mode, uint32_t flags)
{
	struct pack pack = { .data = payload, .size = sizeof(payload) };

	pack_text(&pack, path);
	pack_u32(&pack, mode);
	pack_u32(&pack, flags);
	client_send(&client, AGENT_WRITE, 1, payload, pack.len);
}

static void say_done(uint64_t bytes)
{
	uint8_t data[8];
	struct pack pack = { .data = data, .size = sizeof(data) };

	pack_u64(&pack, bytes);
	client_send(&client, AGENT_DONE, 1, data, pack.len);
}

static void write_whole(const char *path, uint32_t mode, uint32_t flags, const char *text)
{
	ask_write(path, mode, flags);
	client_feed(&client, AGENT_DATA, 1, text, strlen(text));
	say_done(strlen(text));
	client_finish(&client, 1);
}

static const char *content(const char *path)
{
	static char text[400000];

	return fd_read_text_at(AT_FDCWD, path, text, sizeof(text)) < 0 ? "(none)" : text;
}

/* Nothing but the names given: no temporary file was left. */
static int count_in(const char *path)
{
	auto_closedir DIR *dir = opendir(path);
	int n = -2;

	CHECK(dir);
	while (readdir(dir))
		n++;
	return n;
}

TEST(files_write_makes_a_file_with_its_mode)
{
	static char large[300001];
	struct stat st;

	start();
	CHECK_INT(mkdir("/tmp/d", 0755), 0);
	write_whole("/tmp/d/x", 0755, 0, "hello");
	CHECK_STR(content("/tmp/d/x"), "hello");
	CHECK_INT(stat("/tmp/d/x", &st), 0);
	CHECK_INT(st.st_mode & 07777, 0755);
	write_whole("/tmp/d/x", 0600, 0, "again");
	CHECK_STR(content("/tmp/d/x"), "again");
	memset(large, 'y', sizeof(large) - 1);
	write_whole("/tmp/d/x", 0600, 0, large);
	CHECK_INT(strlen(content("/tmp/d/x")), 300000);
	CHECK_INT(count_in("/tmp/d"), 1);
}

TEST(files_write_refuses_set_user_id_and_odd_names)
{
	static const char *const bad[] = { "/", "/tmp/", "/tmp/.", "/tmp/..", ".." };

	start();
	ask_write("/tmp/x", 04755, 0);
	CHECK_INT(refused()->kind, ERR_INVALID);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ask_write(bad[i], 0644, 0);
		CHECK_INT(refused()->kind, ERR_INVALID);
	}
}

TEST(files_write_shows_nothing_until_it_is_whole)
{
	start();
	CHECK_INT(mkdir("/tmp/d", 0755), 0);
	client_make_file("/tmp/d/x", "old", 0644);
	ask_write("/tmp/d/x", 0644, 0);
	client_send(&client, AGENT_DATA, 1, "new", 3);
	CHECK_INT(client_next(&client)->type, AGENT_CREDIT);
	CHECK_STR(content("/tmp/d/x"), "old");
	CHECK_INT(count_in("/tmp/d"), 2);
	say_done(4); /* a byte was lost */
	CHECK_INT(refused()->kind, ERR_PROTOCOL);
	CHECK_STR(content("/tmp/d/x"), "old");
	CHECK_INT(count_in("/tmp/d"), 1);

	ask_write("/tmp/d/x", 0644, 0);
	client_send(&client, AGENT_CANCEL, 1, NULL, 0);
	CHECK_INT(refused()->errnum, ECANCELED);
	CHECK_INT(count_in("/tmp/d"), 1);
}

TEST(files_write_exclusive_never_replaces)
{
	start();
	write_whole("/tmp/x", 0644, WRITE_EXCLUSIVE, "first");
	ask_write("/tmp/x", 0644, WRITE_EXCLUSIVE);
	CHECK_INT(refused()->kind, ERR_CONFLICT);
	/* It appears while we write. */
	ask_write("/tmp/y", 0644, WRITE_EXCLUSIVE);
	client_send(&client, AGENT_DATA, 1, "mine", 4);
	CHECK_INT(client_next(&client)->type, AGENT_CREDIT);
	client_make_file("/tmp/y", "theirs", 0644);
	say_done(4);
	CHECK_INT(refused()->kind, ERR_CONFLICT);
	CHECK_STR(content("/tmp/y"), "theirs");
	CHECK_INT(count_in("/tmp"), 2);
}

TEST(files_write_never_follows_a_symlink)
{
	struct stat st;

	start();
	client_make_file("/tmp/target", "safe", 0644);
	CHECK_INT(symlink("target", "/tmp/link"), 0);
	CHECK_INT(mkdir("/tmp/d", 0755), 0);
	CHECK_INT(symlink("d", "/tmp/dirlink"), 0);
	write_whole("/tmp/link", 0644, 0, "new"); /* the link itself is replaced */
	CHECK_STR(content("/tmp/target"), "safe");
	CHECK_INT(lstat("/tmp/link", &st), 0);
	CHECK(S_ISREG(st.st_mode));
	ask_write("/tmp/dirlink/x", 0644, 0);
	CHECK_INT(refused()->kind, ERR_SYSTEM);
	ask_write("/tmp/dirlink/e/x", 0644, WRITE_PARENTS);
	CHECK_INT(refused()->kind, ERR_SYSTEM);
	CHECK_INT(count_in("/tmp/d"), 0);
}

TEST(files_write_makes_parents_when_asked)
{
	start();
	ask_write("/tmp/a/b/c", 0644, 0);
	CHECK_INT(refused()->kind, ERR_NOT_FOUND);
	write_whole("/tmp/a/b/c", 0644, WRITE_PARENTS, "deep");
	CHECK_STR(content("/tmp/a/b/c"), "deep");
}

static void ask_list(const char *path, uint32_t depth, uint32_t max, uint32_t credit)
{
	struct pack pack = { .data = payload, .size = sizeof(payload) };

	pack_text(&pack, path);
	pack_u32(&pack, depth);
	pack_u32(&pack, max);
	client_send(&client, AGENT_LIST, 1, payload, pack.len);
	client_credit(&client, 1, credit);
}

/* "type path\n" of each, in any order; returns what DONE said. */
static uint64_t list_whole(const char *path, uint32_t depth, uint32_t max)
{
	size_t len = 0;

	ask_list(path, depth, max, PLENTY);
	for (;;) {
		const struct agent_message *m = client_next(&client);
		client.out[len] = '\0';
		if (m->type == AGENT_DONE)
			return m->done.bytes;
		CHECK_INT(m->type, AGENT_ENTRY);
		len += (size_t)snprintf(client.out + len, CLIENT_SAID_MAX - len, "%c %.*s\n",
					(char)m->entry.type, (int)m->entry.path_len, m->entry.path);
	}
}

TEST(list_shows_every_kind_and_follows_nothing)
{
	start();
	CHECK_INT(mkdir("/tmp/d", 0755), 0);
	CHECK_INT(mkdir("/tmp/d/sub", 0755), 0);
	client_make_file("/tmp/d/sub/in", "x", 0644);
	client_make_file("/tmp/d/a\nb\xff", "x", 0644);
	CHECK_INT(symlink("/etc", "/tmp/d/link"), 0);
	CHECK_INT(mkfifo("/tmp/d/fifo", 0644), 0);

	CHECK_INT(list_whole("/tmp/d", 8, 100), 5);
	CHECK(strstr(client.out, "d sub\n"));
	CHECK(strstr(client.out, "f sub/in\n"));
	CHECK(strstr(client.out, "f a\nb\xff\n"));
	CHECK(strstr(client.out, "l link\n"));
	CHECK(strstr(client.out, "o fifo\n"));
	CHECK_INT(list_whole("/tmp/d", 1, 100), 4);
	CHECK(!strstr(client.out, "sub/in"));
	CHECK_INT(list_whole("/tmp/d/link", 0, 1), 1);
	CHECK_STR(client.out, "l \n");
	ask_list("/tmp/d/link", 1, 100, PLENTY);
	CHECK_INT(refused()->kind, ERR_NOT_FOUND);
	ask_list("/tmp/d/sub/in", 1, 100, PLENTY);
	CHECK_INT(refused()->kind, ERR_NOT_FOUND);
}

TEST(list_stops_at_its_maximum_and_says_so)
{
	start();
	CHECK_INT(mkdir("/tmp/d", 0755), 0);
	for (int i = 0; i < 1000; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/tmp/d/file-with-a-longer-name-%d", i);
		client_make_file(path, "", 0644);
	}
	CHECK_INT(list_whole("/tmp/d", 1, 1000), 1000);
	CHECK_INT(list_whole("/tmp/d", 1, 10), 11);
	ask_list("/tmp/d", AGENT_LIST_DEPTH_MAX + 1, 10, PLENTY);
	CHECK_INT(refused()->kind, ERR_LIMIT);
}

TEST(list_goes_no_deeper_than_it_may)
{
	char path[4096] = "/tmp";

	start();
	for (int i = 0; i < 60; i++) {
		strcat(path, "/d");
		CHECK_INT(mkdir(path, 0755), 0);
	}
	CHECK_INT(list_whole("/tmp", AGENT_LIST_DEPTH_MAX, 1000), AGENT_LIST_DEPTH_MAX);
	CHECK_INT(list_whole("/tmp", 3, 1000), 3);
}

TEST(list_leaves_out_paths_that_are_too_long_and_says_so)
{
	char name[256];

	start();
	memset(name, 'n', 255);
	name[255] = '\0';
	CHECK_INT(chdir("/tmp"), 0);
	for (int i = 0; i < 20; i++) {
		CHECK_INT(mkdir(name, 0755), 0);
		CHECK_INT(chdir(name), 0);
	}
	CHECK_INT(list_whole("/tmp", AGENT_LIST_DEPTH_MAX, 1000), 17); /* 16 fit, and one more */
}

TEST(list_spends_credit_and_can_be_given_up)
{
	start();
	for (int i = 0; i < 10; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/tmp/%d", i);
		client_make_file(path, "", 0644);
	}
	for (int i = 0; i < 20; i++) { /* more often than there are places for lists */
		ask_list("/tmp", 1, 100, AGENT_ENTRY_MAX);
		CHECK_INT(client_next(&client)->type, AGENT_ENTRY);
		client_send(&client, AGENT_CANCEL, 1, NULL, 0);
		CHECK_INT(refused()->errnum, ECANCELED);
	}
}

static void give_cgroups(void)
{
	int fd = open("/tmp/tasks", O_WRONLY | O_CREAT | O_APPEND, 0644);

	dup2(fd, 20);
	dup2(20, AGENT_FD_TASKS);
	dup2(20, AGENT_FD_TASKS + 1);
	close(20);
	close(fd);
}

static void run_true(void)
{
	const char *argv[] = { "true", NULL };

	client_exec(&client, 1, &(struct agent_exec){ .argv = argv });
}

TEST(exec_enters_every_cgroup_before_the_program_runs)
{
	if (client_start(&client, give_cgroups, "2") < 0)
		SKIP("needs a pid namespace");
	CHECK_INT(client_next(&client)->type, AGENT_HELLO);
	run_true();
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	CHECK_STR(content("/tmp/tasks"), "00");
}

static void give_bad_cgroup(void)
{
	dup2(open("/dev/null", O_RDONLY), AGENT_FD_TASKS);
}

TEST(exec_fails_when_a_cgroup_refuses)
{
	if (client_start(&client, give_bad_cgroup, "1") < 0)
		SKIP("needs a pid namespace");
	CHECK_INT(client_next(&client)->type, AGENT_HELLO);
	run_true();
	CHECK_INT(refused()->kind, ERR_SETUP);
}

TEST(agent_refuses_to_start_without_the_cgroups_it_was_promised)
{
	if (client_start(&client, NULL, "3") < 0)
		SKIP("needs a pid namespace");
	CHECK_INT(client_wait(&client), EXIT_FAILURE);
}

/* sync() is as good as any for a call that is refused with a notification. */
static void give_listener(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sync, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			      SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	dup2(fd, AGENT_FD_NOTIFY);
	if (fd != AGENT_FD_NOTIFY)
		close(fd);
}

TEST(notify_answers_and_counts_before_the_exit)
{
	const char *argv[] = { "sh", "-c", "i=0; while [ $i -lt 5 ]; do sync; i=$((i+1)); done",
			       NULL };
	const char *envp[] = { "PATH=/usr/bin:/bin", NULL };
	uint32_t times = 0;

	if (client_start(&client, give_listener, NULL) < 0)
		SKIP("needs a pid namespace");
	CHECK_INT(client_next(&client)->type, AGENT_HELLO);
	client_exec(&client, 1, &(struct agent_exec){ .argv = argv, .envp = envp });
	client_credit(&client, 1, PLENTY);
	for (;;) {
		const struct agent_message *m = client_next(&client);
		if (m->type == AGENT_EXIT)
			break;
		if (m->type != AGENT_DENIED)
			continue;
		struct unpack in = { .data = m->denied.pairs, .len = 8 * m->denied.count };
		for (uint32_t i = 0; i < m->denied.count; i++) {
			CHECK_INT(unpack_u32(&in), SYS_sync);
			times += unpack_u32(&in);
		}
	}
	CHECK_INT(times, 5);
}
