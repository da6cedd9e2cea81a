/* SPDX-License-Identifier: Apache-2.0 */
#include "caps.h"

#include "base/err.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int caps_lock(struct err *err)
{
	if (prctl(PR_SET_SECUREBITS, SECURE_ALL_BITS | SECURE_ALL_LOCKS, 0, 0, 0) < 0)
		return err_errno(err, errno, "lock the secure bits");
	return 0;
}

int caps_drop(struct err *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return err_errno(err, errno, "drop capability %lu", cap);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_errno(err, errno, "clear the ambient capabilities");
	if (syscall(SYS_capset, &header, none) < 0)
		return err_errno(err, errno, "drop the capabilities");
	return 0;
}

int caps_no_new_privs(struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, errno, "set no_new_privs");
	return 0;
}
