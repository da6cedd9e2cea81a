/* SPDX-License-Identifier: Apache-2.0 */
#include "outer.h"

#include "mounts.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/sys.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int attach_proc(int root, struct err *err)
{
	auto_close int proc = mounts_new(
		"proc", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);

	return proc < 0 ? proc : mounts_attach(proc, root, "proc", err);
}

int outer_enter(bool with_host, struct err *err)
{
	static const char *const dirs[] = { "proc", "l", "t", "e", "n", "host" };
	struct mount_option options[] = { { "size", "64m" }, { "mode", "755" }, { 0 } };

	if (sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_errno(err, errno, "make the mounts private");
	auto_close int host = -1;
	auto_close int root =
		mounts_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (root < 0)
		return root;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(root, dirs[i], 0755) < 0)
			return err_errno(err, errno, "make '/%s' of the outer root", dirs[i]);
	if (with_host) {
		host = sys_open_tree(AT_FDCWD, "/",
				     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
		if (host < 0)
			return err_errno(err, errno, "take the host's tree");
	}
	/* It must hang somewhere to be pivoted into; /usr is there on every machine. */
	int r = mounts_attach(root, AT_FDCWD, "/usr", err);
	if (r == 0 && with_host)
		r = mounts_attach(host, root, "host", err);
	if (r == 0)
		r = attach_proc(root, err);
	return r < 0 ? r : mounts_pivot(root, err);
}

int outer_new_network(struct err *err)
{
	struct ifreq request = { .ifr_flags = IFF_UP | IFF_RUNNING };

	if (unshare(CLONE_NEWNET) < 0)
		return err_errno(err, errno, "make a network namespace");
	auto_close int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memcpy(request.ifr_name, "lo", 3);
	if (sock < 0 || ioctl(sock, SIOCSIFFLAGS, &request) < 0)
		return err_errno(err, errno, "bring up the loopback");
	return 0;
}
