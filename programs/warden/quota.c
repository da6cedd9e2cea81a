/* SPDX-License-Identifier: Apache-2.0 */
#include "quota.h"

#include "base/err.h"
#include "base/sys.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>

#define BLOCK 1024 /* the unit of limits in struct if_dqblk */
#define NEARLY_FULL 65536

/* QCMD() of the header shifts a bit out of an int. */
#define COMMAND(cmd) ((unsigned)(cmd) << SUBCMDSHIFT | PRJQUOTA)

static int call(int dir_fd, unsigned command, uint32_t project, void *data)
{
	return (int)syscall(SYS_quotactl_fd, dir_fd, command, project, data);
}

static int set_project(int dir_fd, uint32_t project, struct err *err)
{
	struct fsxattr attr;

	if (ioctl(dir_fd, FS_IOC_FSGETXATTR, &attr) < 0)
		return err_errno(err, errno, "read the project of the workspace");
	attr.fsx_projid = project;
	attr.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (ioctl(dir_fd, FS_IOC_FSSETXATTR, &attr) < 0)
		return err_errno(err, errno, "give the workspace a project");
	return 0;
}

static int set_limits(int dir_fd, uint32_t project, uint64_t bytes, uint64_t files, struct err *err)
{
	struct if_dqblk limit = {
		.dqb_bhardlimit = (bytes + BLOCK - 1) / BLOCK,
		.dqb_bsoftlimit = (bytes + BLOCK - 1) / BLOCK,
		.dqb_ihardlimit = files,
		.dqb_isoftlimit = files,
		.dqb_valid = QIF_LIMITS,
	};

	if (call(dir_fd, COMMAND(Q_SETQUOTA), project, &limit) < 0)
		return err_errno(err, errno, "set the quota of the workspace");
	return 0;
}

bool quota_is_kept(int dir_fd)
{
	struct if_dqinfo info;

	/* ext4 answers this only when it enforces, xfs when it at least counts; a limit that xfs
	 * only counts is refused when it is set. */
	return call(dir_fd, COMMAND(Q_GETINFO), 0, &info) == 0;
}

int quota_start(int dir_fd, uint32_t project, const struct limits *limits, struct err *err)
{
	int r = set_limits(dir_fd, project, limits->disk_bytes, limits->disk_files, err);
	return r < 0 ? r : set_project(dir_fd, project, err);
}

void quota_usage(int dir_fd, uint32_t project, const struct limits *limits, struct usage *usage)
{
	struct if_dqblk now;

	if (call(dir_fd, COMMAND(Q_GETQUOTA), project, &now) < 0)
		return;
	usage->disk_bytes = now.dqb_curspace;
	usage->disk_files = now.dqb_curinodes;
	if (now.dqb_curspace + NEARLY_FULL >= limits->disk_bytes ||
	    now.dqb_curinodes >= limits->disk_files)
		usage->disk_full = 1;
}

void quota_stop(int dir_fd, uint32_t project)
{
	struct err ignored;

	(void)set_limits(dir_fd, project, 0, 0, &ignored);
}
