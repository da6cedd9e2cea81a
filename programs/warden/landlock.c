/* SPDX-License-Identifier: Apache-2.0 */
#include "landlock.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/sys.h"

#include <errno.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

/* Newer than the headers of Debian 12. */
#define ACCESS_REFER (1ull << 13)     /* ABI 2 */
#define ACCESS_TRUNCATE (1ull << 14)  /* ABI 3 */
#define ACCESS_IOCTL_DEV (1ull << 15) /* ABI 5 */
#define SCOPE_ABSTRACT_UNIX (1ull << 0)
#define SCOPE_SIGNAL (1ull << 1)

struct ruleset {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped; /* ABI 6 */
};

#define ACCESS_READ                                                                                \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_FILE                                                                                \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |                               \
	 LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE | ACCESS_IOCTL_DEV)

static uint64_t handled(int abi)
{
	uint64_t all = (1ull << 13) - 1;

	if (abi >= 2)
		all |= ACCESS_REFER;
	if (abi >= 3)
		all |= ACCESS_TRUNCATE;
	if (abi >= 5)
		all |= ACCESS_IOCTL_DEV;
	return all;
}

int landlock_abi(void)
{
	int abi =
		(int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : abi;
}

static int allow(int ruleset, int root, const char *path, uint64_t access, uint64_t known,
		 struct err *err)
{
	auto_close int fd = openat(root, path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%s' for Landlock", path);
	if (S_ISLNK(st.st_mode))
		return 0;
	if (!S_ISDIR(st.st_mode))
		access &= ACCESS_FILE;
	struct landlock_path_beneath_attr rule = { .allowed_access = access & known,
						   .parent_fd = fd };
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return err_errno(err, errno, "allow '%s' in Landlock", path);
	return 0;
}

/* Those with a rule of their own, and the canary's. */
static bool has_a_rule(const char *name)
{
	static const char *const names[] = { ".", "..", ".cay", "workspace", "tmp", "dev", "proc" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* Every other name at the top of the root; an image may have any. */
static int allow_top(int ruleset, uint64_t known, struct err *err)
{
	auto_close int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(8) char buffer[4096];
	struct entry { /* what getdents64 fills in */
		uint64_t inode;
		int64_t offset;
		unsigned short size;
		unsigned char type;
		char name[];
	};

	if (root < 0)
		return err_errno(err, errno, "open '/'");
	for (;;) {
		long n = syscall(SYS_getdents64, root, buffer, sizeof(buffer));
		if (n < 0)
			return err_errno(err, errno, "list '/'");
		if (n == 0)
			return 0;
		for (long at = 0; at < n;) {
			const struct entry *entry = (const void *)(buffer + at);
			at += entry->size;
			if (entry->type == DT_LNK || has_a_rule(entry->name))
				continue;
			int r = allow(ruleset, root, entry->name, ACCESS_READ, known, err);
			if (r < 0)
				return r;
		}
	}
}

int landlock_restrict(int abi, struct err *err)
{
	uint64_t known = handled(abi);
	uint64_t write = known & ~(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK);
	const struct {
		const char *path;
		uint64_t access;
	} rules[] = {
		{ "/workspace", write },
		{ "/tmp", write },
		{ "/dev/shm", write },
		{ "/dev", LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_READ | ACCESS_IOCTL_DEV },
		{ "/proc", LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_READ | ACCESS_TRUNCATE },
		{ "/", LANDLOCK_ACCESS_FS_READ_DIR },
	};
	struct ruleset attr = {
		.fs = known,
		.scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0,
	};
	size_t size = abi >= 6 ? sizeof(attr) : sizeof(attr.fs);

	auto_close int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (ruleset < 0)
		return err_errno(err, errno, "make the Landlock ruleset");
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		int r = allow(ruleset, AT_FDCWD, rules[i].path, rules[i].access, known, err);
		if (r < 0)
			return r;
	}
	int r = allow_top(ruleset, known, err);
	if (r < 0)
		return r;
	if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return err_errno(err, errno, "restrict by Landlock");
	return 0;
}
