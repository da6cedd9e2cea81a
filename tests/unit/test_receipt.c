/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt_fixture.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>

static int sync_fails_with;

/* Stands before libc's: a disk that cannot keep what it was given. */
int fdatasync(int fd)
{
	if (sync_fails_with) {
		errno = sync_fails_with;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

TEST(receipt_first_has_seq_1_and_no_prev)
{
	fixture_state();
	struct receipts *receipts = fixture_open();
	struct receipt receipt;
	struct err err = { 0 };

	CHECK_INT(fixture_append(receipts, 10, &receipt, &err), 0);
	CHECK_INT((long long)receipt.seq, 1);
	CHECK(id_is_valid(receipt.id, ID_RECEIPT));
	CHECK(digest_is_hex(receipt.key_id));
	CHECK(strchr(receipt.envelope, '\n') == NULL);

	size_t len;
	auto_free char *file = fixture_read(&len);
	CHECK_INT((long long)len, (long long)strlen(receipt.envelope) + 1);
	CHECK(strncmp(file, receipt.envelope, len - 1) == 0);
	CHECK(file[len - 1] == '\n');

	struct receipt_check check = fixture_verify();
	CHECK_INT(check.verdict, RECEIPT_VALID);
	CHECK_STR(check.head, receipt.sha256);
	receipt_finish(&receipt);
	receipts_close(receipts);
}

TEST(receipt_files_are_for_the_owner_alone)
{
	struct stat st;

	umask(0);
	fixture_state();
	fixture_append_many(1);
	CHECK(stat(fixture_path("receipts"), &st) == 0 && (st.st_mode & 07777) == 0700);
	CHECK(stat(fixture_path(RECEIPT_CHAIN), &st) == 0 && (st.st_mode & 07777) == 0600);
	CHECK(stat(fixture_path("keys"), &st) == 0 && (st.st_mode & 07777) == 0700);
	CHECK(stat(fixture_path("keys/receipt.key"), &st) == 0 && (st.st_mode & 07777) == 0600);
}

TEST(receipt_chain_goes_on_in_another_process)
{
	fixture_state();
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		if (child == 0) {
			fixture_append_many(2);
			_exit(0);
		}
		int status;
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	struct receipt_check check = fixture_verify();
	CHECK_INT(check.verdict, RECEIPT_VALID);
	CHECK_INT((long long)check.good, 6);
	CHECK_INT((long long)check.last_seq, 6);
}

TEST(receipt_200_parallel_appends_make_one_line_without_gaps)
{
	enum { PROCESSES = 8, EACH = 25 };
	int gate[2];

	fixture_state();
	CHECK(pipe(gate) == 0);
	/* The directory is new: the processes also race for the key and the first line. */
	for (int i = 0; i < PROCESSES; i++) {
		if (fork() == 0) {
			char c;
			close(gate[1]);
			(void)!read(gate[0], &c, 1);
			fixture_append_many(EACH);
			_exit(0);
		}
	}
	close(gate[1]);
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		CHECK(wait(&status) > 0 && status == 0);
	}
	struct receipt_check check = fixture_verify();
	CHECK_STR(check.reason, "");
	CHECK_INT(check.verdict, RECEIPT_VALID);
	CHECK_INT((long long)check.good, PROCESSES * EACH);
	CHECK_INT((long long)check.last_seq, PROCESSES * EACH);
}

TEST(receipt_handle_may_be_shared_by_forked_processes)
{
	fixture_state();
	struct receipts *receipts = fixture_open();

	for (int i = 0; i < 8; i++) {
		if (fork() == 0) {
			struct receipt receipt;
			struct err err = { 0 };
			for (int k = 0; k < 5; k++) {
				CHECK_INT(fixture_append(receipts, 50, &receipt, &err), 0);
				receipt_finish(&receipt);
			}
			_exit(0);
		}
	}
	for (int i = 0; i < 8; i++) {
		int status;
		CHECK(wait(&status) > 0 && status == 0);
	}
	receipts_close(receipts);
	CHECK_INT((long long)fixture_verify().good, 40);
}

TEST(receipt_writer_that_is_killed_leaves_a_good_chain)
{
	fixture_state();
	fixture_append_many(1);
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		if (child == 0)
			for (;;)
				fixture_append_many(100);
		usleep(3000 + 500 * (useconds_t)i);
		kill(child, SIGKILL);
		CHECK(waitpid(child, NULL, 0) == child);
	}
	fixture_append_many(1);
	struct receipt_check check = fixture_verify();
	CHECK_STR(check.reason, "");
	CHECK_INT(check.verdict, RECEIPT_VALID);
	CHECK_INT((long long)check.torn_bytes, 0);
}

TEST(receipt_torn_tail_of_any_length_is_cut_and_never_a_record)
{
	fixture_state();
	fixture_append_many(2);
	size_t len;
	auto_free char *whole = fixture_read(&len);
	size_t first = (size_t)(strchr(whole, '\n') - whole) + 1;

	for (size_t cut = first; cut < len; cut += 7) {
		fixture_write(whole, cut);
		CHECK_INT((long long)fixture_verify().good, 1);
		CHECK_INT((long long)fixture_verify().torn_bytes, (long long)(cut - first));
		fixture_append_many(1);
		struct receipt_check check = fixture_verify();
		CHECK_INT(check.verdict, RECEIPT_VALID);
		CHECK_INT((long long)check.good, 2);
		CHECK_INT((long long)check.torn_bytes, 0);
	}
}

TEST(receipt_torn_first_line_is_cut_too)
{
	fixture_state();
	fixture_append_many(1);
	size_t len;
	auto_free char *whole = fixture_read(&len);

	fixture_write(whole, len - 1);
	fixture_append_many(1);
	CHECK_INT((long long)fixture_verify().good, 1);
	CHECK_INT((long long)fixture_verify().last_seq, 1);
}

TEST(receipt_zeros_that_a_file_system_left_are_cut)
{
	fixture_state();
	fixture_append_many(2);
	size_t len;
	auto_free char *whole = fixture_read(&len);
	size_t first = (size_t)(strchr(whole, '\n') - whole) + 1;

	memset(whole + first, 0, 300);
	fixture_write(whole, len);
	fixture_append_many(1);
	CHECK_INT(fixture_verify().verdict, RECEIPT_VALID);
	CHECK_INT((long long)fixture_verify().good, 2);
}

TEST(receipt_damaged_last_line_is_not_built_upon)
{
	fixture_state();
	fixture_append_many(2);
	size_t len, after;
	auto_free char *whole = fixture_read(&len);

	whole[len - 400] ^= 0x80;
	fixture_write(whole, len);
	struct receipts *receipts = fixture_open();
	struct receipt receipt;
	struct err err = { 0 };
	CHECK(fixture_append(receipts, 10, &receipt, &err) < 0);
	CHECK_INT(err.kind, ERR_CONFLICT);
	CHECK(strstr(err.text, "damaged") != NULL);
	auto_free char *same = fixture_read(&after);
	CHECK(after == len && memcmp(whole, same, len) == 0);
	receipts_close(receipts);
}

TEST(receipt_of_the_largest_size_fits_and_the_next_byte_is_refused)
{
	fixture_state();
	struct receipts *receipts = fixture_open();
	struct receipt receipt;
	struct err err = { 0 };
	size_t low = 0, high = RECEIPT_STATEMENT_MAX;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		if (fixture_append(receipts, middle, &receipt, &err) < 0) {
			CHECK_INT(err.kind, ERR_LIMIT);
			high = middle;
		} else {
			CHECK(strlen(receipt.envelope) < RECEIPT_LINE_MAX);
			receipt_finish(&receipt);
			low = middle;
		}
	}
	CHECK(low > RECEIPT_STATEMENT_MAX - 1000);
	CHECK(strstr(err.text, "48000") != NULL);
	CHECK_INT(fixture_append(receipts, 10, &receipt, &err), 0);
	receipt_finish(&receipt);
	CHECK_INT(fixture_verify().verdict, RECEIPT_VALID);
	receipts_close(receipts);
}

TEST(receipt_predicate_cannot_say_its_own_seq)
{
	fixture_state();
	struct receipts *receipts = fixture_open();
	struct receipt receipt;
	struct err err = { 0 };
	json_t *predicate = json_pack("{s:i}", "seq", 7);

	CHECK_INT(receipt_append(receipts, predicate, NULL, 0, &receipt, &err), -EINVAL);
	CHECK(strstr(err.text, "'seq'") != NULL);
	json_decref(predicate);
	receipts_close(receipts);
}

TEST(receipt_failed_sync_is_final_and_leaves_the_chain_as_it_was)
{
	fixture_state();
	fixture_append_many(2);
	struct receipts *receipts = fixture_open();
	struct receipt receipt;
	struct err err = { 0 };
	size_t before, after;
	auto_free char *was = fixture_read(&before);

	sync_fails_with = EIO;
	CHECK_INT(fixture_append(receipts, 10, &receipt, &err), -EIO);
	sync_fails_with = 0;
	CHECK_INT(fixture_append(receipts, 10, &receipt, &err), -EBUSY);
	CHECK(strstr(err.text, "durable") != NULL);
	receipts_close(receipts);
	receipts = fixture_open();
	CHECK(fixture_append(receipts, 10, &receipt, &err) < 0);
	receipts_close(receipts);

	auto_free char *is = fixture_read(&after);
	CHECK(before == after && memcmp(was, is, before) == 0);
}

/* Mounts a small tmpfs on the state directory, in a mount namespace of the test's own. */
static void mount_small(const char *options)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		SKIP("needs root to mount");
	fixture_state();
	CHECK(mount("none", fixture_dir, "tmpfs", 0, options) == 0);
}

static void fill_disk(void)
{
	static const char zeros[4096];
	auto_close int fd = open(fixture_path("full"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
}

TEST(receipt_full_disk_is_told_and_leaves_the_chain_as_it_was)
{
	mount_small("size=128k");
	fixture_append_many(3);
	fill_disk();
	struct receipts *receipts = fixture_open();
	struct receipt receipt;
	struct err err = { 0 };
	size_t before, after;
	auto_free char *was = fixture_read(&before);

	CHECK_INT(fixture_append(receipts, 20000, &receipt, &err), -ENOSPC);
	CHECK(strstr(err.text, "No space left") != NULL);
	auto_free char *is = fixture_read(&after);
	CHECK(before == after && memcmp(was, is, before) == 0);

	CHECK(unlink(fixture_path("full")) == 0);
	CHECK_INT(fixture_append(receipts, 20000, &receipt, &err), 0);
	receipt_finish(&receipt);
	CHECK_INT((long long)fixture_verify().good, 4);
	receipts_close(receipts);
}

TEST(receipt_full_disk_leaves_no_half_key)
{
	mount_small("size=16k");
	fill_disk();
	struct receipts *receipts = NULL;
	struct err err = { 0 };

	CHECK_INT(receipts_open(fixture_dir, &receipts, &err), -ENOSPC);
	CHECK(access(fixture_path("keys/receipt.key"), F_OK) < 0);
	CHECK(access(fixture_path("keys/receipt.key.new"), F_OK) < 0);
	CHECK(unlink(fixture_path("full")) == 0);
	fixture_append_many(1);
	CHECK_INT(fixture_verify().verdict, RECEIPT_VALID);
}

TEST(receipt_read_only_disk_is_told)
{
	mount_small("size=128k");
	fixture_append_many(3);
	struct receipts *receipts = fixture_open();
	struct receipt receipt;
	struct err err = { 0 };

	CHECK(mount(NULL, fixture_dir, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
	CHECK_INT(fixture_append(receipts, 10, &receipt, &err), -EROFS);
	CHECK(strstr(err.text, "Read-only") != NULL);
	receipts_close(receipts);
	CHECK_INT((long long)fixture_verify().good, 3);
}

TEST(receipt_chain_that_is_a_symlink_is_refused)
{
	fixture_state();
	struct receipts *receipts = fixture_open();
	struct receipt receipt;
	struct err err = { 0 };

	CHECK(symlink("/dev/null", fixture_path(RECEIPT_CHAIN)) == 0);
	CHECK_INT(fixture_append(receipts, 10, &receipt, &err), -ELOOP);
	receipts_close(receipts);
}
