/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/layers.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/path.h"
#include "runtime/prefix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_digest(const char *text)
{
	return strspn(text, "0123456789abcdef") == LAYERS_DIGEST_SIZE - 1 &&
	       text[LAYERS_DIGEST_SIZE - 1] == '\0';
}

int layers_link_name(const struct runtime *runtime, const char *set,
		     char ret_name[static RUNTIME_NAME_SIZE])
{
	bool in_usr = prefix_is_in_usr(runtime->prefix);
	int len = snprintf(ret_name, RUNTIME_NAME_SIZE, "%s%s%s", set, in_usr ? "." : "",
			   in_usr ? runtime->prefix + 1 : "");

	if (len >= RUNTIME_NAME_SIZE)
		return -ENAMETOOLONG;
	for (char *c = ret_name; *c; c++)
		if (*c == '/')
			*c = '-';
	return 0;
}

static int read_link(int dirfd, const char *link, char ret_digest[static LAYERS_DIGEST_SIZE])
{
	char digest[LAYERS_DIGEST_SIZE + 1];
	ssize_t n = readlinkat(dirfd, link, digest, sizeof(digest) - 1);

	if (n < 0)
		return -errno;
	digest[n] = '\0';
	if (!is_digest(digest))
		return -ENOENT;
	memcpy(ret_digest, digest, LAYERS_DIGEST_SIZE);
	return 0;
}

int layers_find(const char *state_dir, const struct runtime *runtime, const char *set,
		char ret_path[static PATH_MAX], char ret_digest[static LAYERS_DIGEST_SIZE])
{
	char link[RUNTIME_NAME_SIZE], path[PATH_MAX], digest[LAYERS_DIGEST_SIZE];
	struct stat st;

	if (layers_link_name(runtime, set, link) < 0)
		return -ENOENT;
	int len = snprintf(path, sizeof(path), "%s/layers/%s/%s", state_dir, runtime->name, link);
	if (len >= (int)sizeof(path) || read_link(AT_FDCWD, path, digest) < 0)
		return -ENOENT;
	len = snprintf(path, sizeof(path), "%s/layers/%s/%s", state_dir, runtime->name, digest);
	if (len >= (int)sizeof(path) || lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return -ENOENT;
	memcpy(ret_path, path, (size_t)len + 1);
	memcpy(ret_digest, digest, sizeof(digest));
	return 0;
}

int layers_open_dir(const char *state_dir, const char *name, struct err *err)
{
	char path[PATH_MAX];

	auto_close int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state < 0)
		return err_errno(err, errno, "open the state directory '%s'", state_dir);
	if (!path_is_name(name) ||
	    snprintf(path, sizeof(path), "layers/%s", name) >= (int)sizeof(path))
		return err_make(err, ERR_INVALID, "'%s' cannot have a layer", name);
	int r = path_make_dirs(state, path, 0755);
	if (r < 0)
		return err_errno(err, -r, "make '%s/%s'", state_dir, path);
	int fd = openat(state, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_errno(err, errno, "open '%s/%s'", state_dir, path);
	return fd;
}

int layers_publish(int dirfd, const char *digest, const char *link, struct err *err)
{
	char temporary[RUNTIME_NAME_SIZE + 8];

	snprintf(temporary, sizeof(temporary), ".%s.new", link);
	(void)unlinkat(dirfd, temporary, 0); /* of one that was killed right here */
	if (symlinkat(digest, dirfd, temporary) < 0)
		return err_errno(err, errno, "make the link '%s'", link);
	if (renameat(dirfd, temporary, dirfd, link) < 0)
		return err_errno(err, errno, "put the link '%s' in place", link);
	return 0;
}

static DIR *open_dir_at(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static int each_link(DIR *dir, const char *name, layers_fn on_layer, void *arg)
{
	char digest[LAYERS_DIGEST_SIZE];

	for (const struct dirent *entry; (entry = readdir(dir));) {
		if (entry->d_name[0] == '.' || read_link(dirfd(dir), entry->d_name, digest) < 0 ||
		    faccessat(dirfd(dir), digest, F_OK, 0) < 0)
			continue;
		int r = on_layer(arg, name, entry->d_name, digest);
		if (r != 0)
			return r;
	}
	return 0;
}

int layers_each(const char *state_dir, layers_fn on_layer, void *arg)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/layers", state_dir) >= (int)sizeof(path))
		return 0;
	auto_closedir DIR *layers = opendir(path);
	if (!layers)
		return 0;
	for (const struct dirent *entry; (entry = readdir(layers));) {
		if (entry->d_name[0] == '.')
			continue;
		auto_closedir DIR *dir = open_dir_at(dirfd(layers), entry->d_name);
		int r = dir ? each_link(dir, entry->d_name, on_layer, arg) : 0;
		if (r != 0)
			return r;
	}
	return 0;
}

static int on_used(void *arg, const char *name, const char *link, const char *digest)
{
	(void)name, (void)link;
	return strcmp(arg, digest) == 0;
}

static bool is_used(int dirfd, char *digest)
{
	auto_closedir DIR *dir = open_dir_at(dirfd, ".");

	return dir && each_link(dir, "", on_used, digest) == 1;
}

int layers_remove(const char *state_dir, const char *name, const char *link, struct err *err)
{
	char path[PATH_MAX], digest[LAYERS_DIGEST_SIZE];

	if (!path_is_name(name) || !path_is_name(link) ||
	    snprintf(path, sizeof(path), "%s/layers/%s", state_dir, name) >= (int)sizeof(path))
		return err_make(err, ERR_INVALID, "'%s' is not the name of a layer", name);
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0 || read_link(dir, link, digest) < 0)
		return err_make(err, ERR_NOT_FOUND, "%s has no libraries '%s'", name, link);
	if (unlinkat(dir, link, 0) < 0)
		return err_errno(err, errno, "remove the link '%s' of %s", link, name);
	int r = is_used(dir, digest) ? 0 : path_remove_tree(dir, digest);
	if (r < 0 && r != -ENOENT)
		return err_errno(err, -r, "remove '%s/%s'", path, digest);
	return 0;
}

void layers_sweep(int dirfd_of_name)
{
	auto_closedir DIR *dir = open_dir_at(dirfd_of_name, ".");

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (strncmp(entry->d_name, ".build-", 7) == 0 ||
		    (is_digest(entry->d_name) && !is_used(dirfd_of_name, entry->d_name)))
			(void)path_remove_tree(dirfd_of_name, entry->d_name);
}
