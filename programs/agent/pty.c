/* SPDX-License-Identifier: Apache-2.0 */
#include "pty.h"

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* By descriptor, so that what /dev/pts shows does not matter. */
static int open_slave(int master)
{
	int locked = 0;

	if (ioctl(master, TIOCSPTLCK, &locked) < 0)
		return -errno;
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return slave < 0 ? -errno : slave;
}

int pty_open(uint32_t rows, uint32_t columns, int *ret_master, int *ret_slave)
{
	auto_close int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

	if (master < 0)
		return -errno;
	auto_close int slave = open_slave(master);
	if (slave < 0)
		return slave;
	int r = pty_resize(master, rows, columns);
	if (r < 0)
		return r;
	*ret_master = take_fd(&master);
	*ret_slave = take_fd(&slave);
	return 0;
}

int pty_resize(int master, uint32_t rows, uint32_t columns)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns };

	return ioctl(master, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

int pty_control(int slave)
{
	return ioctl(slave, TIOCSCTTY, 0);
}
