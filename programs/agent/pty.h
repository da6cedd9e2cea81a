/* SPDX-License-Identifier: Apache-2.0
 *
 * pty.h - terminals from the sandbox's own devpts. */
#pragma once

#include <stdint.h>

/* Both ends, CLOEXEC, nobody's controlling terminal yet; ours is non-blocking.  -errno. */
int pty_open(uint32_t rows, uint32_t columns, int *ret_master, int *ret_slave);

int pty_resize(int master, uint32_t rows, uint32_t columns);

/* Makes it the controlling terminal of the caller, a session leader.  -1 and errno. */
int pty_control(int slave);
