/* SPDX-License-Identifier: Apache-2.0
 *
 * receipt_fixture.h - a state directory of a test, and chains in it. */
#pragma once

#include "check.h"

#include "base/auto.h"
#include "base/err.h"
#include "receipt/receipt.h"
#include "receipt/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>

static char fixture_dir[64];

static int fixture_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void fixture_remove(void)
{
	(void)nftw(fixture_dir, fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	/* A test may have mounted something on it. */
	(void)umount2(fixture_dir, MNT_DETACH);
	(void)rmdir(fixture_dir);
}

/* The directory goes when the test ends well; one that fails leaves it to be looked at. */
static inline const char *fixture_state(void)
{
	snprintf(fixture_dir, sizeof(fixture_dir), "/tmp/cay-test-receipt.XXXXXX");
	CHECK(mkdtemp(fixture_dir) != NULL);
	atexit(fixture_remove);
	return fixture_dir;
}

static inline const char *fixture_path(const char *name)
{
	static char path[4][256];
	static unsigned turn;
	char *to = path[turn++ % 4];

	snprintf(to, 256, "%s/%s", fixture_dir, name);
	return to;
}

static inline struct receipts *fixture_open(void)
{
	struct receipts *receipts = NULL;
	struct err err = { 0 };

	if (receipts_open(fixture_dir, &receipts, &err) < 0)
		END(EXIT_FAILURE, "%s", err.text);
	return receipts;
}

/* Appends one receipt whose `note` is n bytes long. */
static inline int fixture_append(struct receipts *receipts, size_t n, struct receipt *ret_receipt,
				 struct err *err)
{
	char *note = malloc(n + 1);
	char sha256[DIGEST_HEX_SIZE];
	struct receipt_subject out = { "stdout", sha256 };

	memset(note, 'n', n);
	note[n] = '\0';
	digest_of("hello", 5, sha256);
	json_t *predicate = json_pack("{s:s, s:s}", "cause", "exited", "note", note);
	int r = receipt_append(receipts, predicate, &out, 1, ret_receipt, err);
	json_decref(predicate);
	free(note);
	return r;
}

static inline void fixture_append_many(unsigned n)
{
	struct receipts *receipts = fixture_open();
	struct err err = { 0 };

	for (unsigned i = 0; i < n; i++) {
		struct receipt receipt;
		if (fixture_append(receipts, 100, &receipt, &err) < 0)
			END(EXIT_FAILURE, "%s", err.text);
		receipt_finish(&receipt);
	}
	receipts_close(receipts);
}

static inline struct receipt_check fixture_verify_with(const struct receipt_keys *keys, bool part)
{
	struct receipt_check check;
	struct err err = { 0 };
	auto_close int fd = open(fixture_path(RECEIPT_CHAIN), O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	if (receipt_verify(fd, keys, part, &check, &err) < 0)
		END(EXIT_FAILURE, "%s", err.text);
	return check;
}

static inline struct receipt_check fixture_verify(void)
{
	struct receipt_keys keys = { 0 };
	struct err err = { 0 };

	if (receipt_keys_add_file(&keys, fixture_path(RECEIPT_PUBLIC_KEY), &err) < 0)
		END(EXIT_FAILURE, "%s", err.text);
	return fixture_verify_with(&keys, false);
}

static inline char *fixture_read(size_t *ret_len)
{
	auto_close int fd = open(fixture_path(RECEIPT_CHAIN), O_RDONLY | O_CLOEXEC);
	struct stat st;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	char *bytes = malloc((size_t)st.st_size + 1);
	CHECK_INT(read(fd, bytes, (size_t)st.st_size + 1), st.st_size);
	bytes[st.st_size] = '\0';
	*ret_len = (size_t)st.st_size;
	return bytes;
}

static inline void fixture_write(const char *bytes, size_t len)
{
	auto_close int fd =
		open(fixture_path(RECEIPT_CHAIN), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, bytes, len), (long long)len);
}
