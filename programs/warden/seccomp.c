/* SPDX-License-Identifier: Apache-2.0 */
#include "seccomp.h"

#include "seccomp_filter.h"

#include "base/err.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 5.19: a caller that waits for its answer can be killed, but not made to ask again. */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static int load(const struct sock_filter *filter, size_t len, unsigned long flags)
{
	struct sock_fprog program = {
		.len = (unsigned short)len,
		.filter = (struct sock_filter *)filter, /* the kernel only reads it */
	};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

int seccomp_load(bool with_listener, int *ret_listener, struct err *err)
{
	if (!with_listener) {
		if (load(seccomp_filter_plain, seccomp_filter_plain_len, 0) < 0)
			return err_errno(err, errno, "load the system call filter");
		return 0;
	}

	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	int fd = load(seccomp_filter, seccomp_filter_len,
		      flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	if (fd < 0 && errno == EINVAL)
		fd = load(seccomp_filter, seccomp_filter_len, flags);
	if (fd < 0)
		return err_errno(err, errno, "load the system call filter");
	*ret_listener = fd;
	return 0;
}
