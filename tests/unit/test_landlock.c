/* SPDX-License-Identifier: Apache-2.0 */
#include "landlock.h"

#include "caps.h"
#include "mounts.h"
#include "warden_fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

/* The shape of a sandbox's root on a tmpfs that everybody may write to: only Landlock forbids. */
static void enter_root(void)
{
	static const char *const dirs[] = { "workspace", "tmp", "dev",  "dev/shm",
					    "proc",      "etc", ".cay", "usr" };

	enter_namespaces(0);
	int root = mounts_new("tmpfs", NULL, 0, &err);
	CHECK(root >= 0);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		CHECK_INT(mkdirat(root, dirs[i], 0777), 0);
	make_file(root, ".cay/canary", "x", 0666);
	make_file(root, "etc/passwd", "x", 0666);
	make_file(root, "dev/null", "x", 0666);
	make_file(root, "proc/self", "x", 0666);
	make_file(root, "file", "x", 0666);
	make_file(root, "workspace/f", "x", 0666);
	CHECK_INT(symlinkat("usr", root, "bin"), 0);
	CHECK_INT(chdir("/"), 0);
	CHECK_INT(mounts_attach(root, AT_FDCWD, tmp_path, &err), 0);
	CHECK_INT(mounts_pivot(root, &err), 0);
	CHECK_INT(access("/.cay/canary", R_OK), 0);
	CHECK_INT(caps_no_new_privs(&err), 0);
	CHECK_INT(landlock_restrict(landlock_abi(), &err), 0);
}

static void restricted(void (*run)(void))
{
	if (!landlock_abi())
		SKIP("this kernel has no Landlock");
	close(tmp_make());
	in_child(run);
	tmp_finish();
}

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static void canary(void)
{
	enter_root();
	CHECK_INT(try_open("/.cay/canary", O_RDONLY), EACCES);
	CHECK_INT(try_open("/etc/passwd", O_RDONLY), 0);
	CHECK_INT(try_open("/file", O_RDONLY), 0);
	CHECK_INT(try_open("/", O_RDONLY | O_DIRECTORY), 0);
}

TEST(landlock_forbids_the_canary_and_nothing_else_to_read)
{
	restricted(canary);
}

static void writes(void)
{
	static const char *const allowed[] = { "/workspace/new", "/tmp/new", "/dev/shm/new",
					       "/workspace/f" };
	static const char *const refused[] = { "/new",         "/usr/new",  "/etc/new",
					       "/dev/new",     "/proc/new", "/etc/passwd",
					       "/.cay/canary", "/file" };

	enter_root();
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		CHECK_INT(try_open(allowed[i], O_WRONLY | O_CREAT), 0);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		CHECK_INT(try_open(refused[i], O_WRONLY | O_CREAT), EACCES);
	CHECK_INT(try_open("/dev/null", O_WRONLY), 0);
	CHECK_INT(try_open("/proc/self", O_WRONLY), 0);
	CHECK_INT(mkdir("/etc/d", 0755), -1);
	CHECK_INT(mkdir("/workspace/d", 0755), 0);
	CHECK_INT(unlink("/etc/passwd"), -1);
	CHECK_INT(unlink("/workspace/f"), 0);
	CHECK_INT(symlink("/etc", "/tmp/link"), 0);
	CHECK_INT(mkfifo("/workspace/fifo", 0600), 0);
	CHECK_INT(rename("/workspace/new", "/etc/new"), -1);
	if (landlock_abi() >= 2)
		CHECK_INT(rename("/workspace/new", "/workspace/d/new"), 0);
}

TEST(landlock_allows_writing_only_where_the_sandbox_writes)
{
	restricted(writes);
}

static void devices(void)
{
	enter_root();
	/* EACCES is Landlock's word; a missing capability would be EPERM. */
	CHECK_INT(mknod("/workspace/null", S_IFCHR | 0666, 0x103), -1);
	CHECK_INT(errno, EACCES);
	CHECK_INT(mknod("/tmp/disk", S_IFBLK | 0666, 0x700), -1);
	CHECK_INT(errno, EACCES);
}

TEST(landlock_allows_no_device_node_anywhere)
{
	restricted(devices);
}

static void scope(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "\0cay-unit-landlock" };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);

	if (landlock_abi() < 6)
		SKIP("scopes need Landlock ABI 6");
	CHECK_INT(bind(listener, (void *)&address, sizeof(address)), 0);
	CHECK_INT(listen(listener, 1), 0);
	enter_root();
	CHECK_INT(connect(client, (void *)&address, sizeof(address)), -1);
	CHECK_INT(errno, EPERM);
	CHECK_INT(kill(getppid(), 0), -1);
	CHECK_INT(errno, EPERM);
}

TEST(landlock_keeps_signals_and_abstract_sockets_inside)
{
	restricted(scope);
}

static void without_privs(void)
{
	if (is_root() && (setgid(65534) < 0 || setuid(65534) < 0))
		SKIP("cannot become nobody");
	CHECK(landlock_restrict(landlock_abi(), &err) < 0);
}

TEST(landlock_restrict_fails_where_it_cannot_hold)
{
	restricted(without_privs);
}
