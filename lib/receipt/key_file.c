/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/key_file.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "receipt/pem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#define KEY_NAME "receipt.key"
#define KEY_NEW "receipt.key.new"
#define PUBLIC_NAME "receipt.pub"
#define PUBLIC_NEW "receipt.pub.new"

static int read_seed(int fd, uint8_t ret_seed[static KEY_FILE_SIZE], struct err *err)
{
	struct stat st;
	char more;

	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "look at '%s'", KEY_NAME);
	if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0))
		return err_make(err, ERR_CONFLICT, "'%s' is not a file of this user", KEY_NAME);
	if (st.st_mode & 077)
		return err_make(err, ERR_CONFLICT,
				"'%s' can be read by others: if nobody did, chmod 600 it",
				KEY_NAME);
	ssize_t n = fd_read_exact(fd, ret_seed, KEY_FILE_SIZE);
	if (n < 0 && n != -EPIPE)
		return err_errno(err, (int)-n, "read '%s'", KEY_NAME);
	if (n != KEY_FILE_SIZE || fd_read_exact(fd, &more, 1) != 0)
		return err_make(err, ERR_CONFLICT, "'%s' is not %d bytes long", KEY_NAME,
				KEY_FILE_SIZE);
	return 0;
}

/* A new file with these bytes, on disk. */
static int write_new(int dir, const char *name, mode_t mode, const void *data, size_t len,
		     struct err *err)
{
	(void)unlinkat(dir, name, 0); /* what a maker that was killed left behind */
	auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return err_errno(err, errno, "create '%s'", name);
	int r = fd_write_all(fd, data, len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dir, name, 0); /* the error that matters is told */
		return err_errno(err, -r, "write '%s'", name);
	}
	return 0;
}

static int make_key(int dir, struct err *err)
{
	uint8_t seed[KEY_FILE_SIZE];

	if (getrandom(seed, sizeof(seed), 0) != sizeof(seed))
		return err_errno(err, errno, "get random bytes for a key");
	int r = write_new(dir, KEY_NEW, 0600, seed, sizeof(seed), err);
	explicit_bzero(seed, sizeof(seed));
	if (r < 0)
		return r;
	/* link() never replaces a key that is there, rename() would. */
	if (linkat(dir, KEY_NEW, dir, KEY_NAME, 0) < 0 && errno != EEXIST)
		r = err_errno(err, errno, "name '%s'", KEY_NAME);
	(void)unlinkat(dir, KEY_NEW, 0); /* the next maker does it otherwise */
	if (r == 0 && fsync(dir) < 0)
		return err_errno(err, errno, "sync the directory of '%s'", KEY_NAME);
	return r;
}

/* Opens `keys` and locks it against others who are making a key. */
static int lock_keys(const char *state_dir, struct err *err)
{
	auto_close int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state < 0)
		return err_errno(err, errno, "open '%s'", state_dir);
	if (mkdirat(state, "keys", 0700) == 0)
		(void)fsync(state); /* a lost directory is made again, with another key */
	else if (errno != EEXIST)
		return err_errno(err, errno, "make '%s/keys'", state_dir);
	auto_close int dir = openat(state, "keys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_errno(err, errno, "open '%s/keys'", state_dir);
	while (flock(dir, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_errno(err, errno, "lock '%s/keys'", state_dir);
	return take_fd(&dir);
}

static int make_and_open(const char *state_dir, struct err *err)
{
	auto_close int dir = lock_keys(state_dir, err);
	if (dir < 0)
		return dir;
	if (faccessat(dir, KEY_NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
		int r = make_key(dir, err);
		if (r < 0)
			return r;
	}
	int fd = openat(dir, KEY_NAME, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? err_errno(err, errno, "open '%s'", KEY_NAME) : fd;
}

static int path_of(char ret_path[static PATH_MAX], const char *state_dir, const char *name,
		   struct err *err)
{
	if (snprintf(ret_path, PATH_MAX, "%s/keys/%s", state_dir, name) >= PATH_MAX)
		return err_errno(err, ENAMETOOLONG, "open '%s'", name);
	return 0;
}

int key_file_load(const char *state_dir, uint8_t ret_seed[static KEY_FILE_SIZE], struct err *err)
{
	char path[PATH_MAX];

	int r = path_of(path, state_dir, KEY_NAME, err);
	if (r < 0)
		return r;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && errno != ENOENT)
		return err_errno(err, errno, "open '%s'", path);
	if (fd < 0)
		fd = make_and_open(state_dir, err);
	if (fd < 0)
		return err_while(err, "make the signing key in '%s/keys'", state_dir);
	r = read_seed(fd, ret_seed, err);
	return r < 0 ? err_while(err, "signing key in '%s/keys'", state_dir) : 0;
}

int key_file_publish(const char *state_dir, const uint8_t public[static KEY_FILE_SIZE],
		     struct err *err)
{
	char path[PATH_MAX], text[PEM_TEXT_SIZE];

	int r = path_of(path, state_dir, PUBLIC_NAME, err);
	if (r < 0 || access(path, F_OK) == 0)
		return r;
	auto_close int dir = lock_keys(state_dir, err);
	if (dir < 0)
		return dir;
	size_t len = pem_encode(public, text);
	r = write_new(dir, PUBLIC_NEW, 0644, text, len, err);
	if (r < 0)
		return r;
	if (renameat(dir, PUBLIC_NEW, dir, PUBLIC_NAME) < 0)
		return err_errno(err, errno, "name '%s'", path);
	return 0;
}
