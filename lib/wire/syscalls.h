/* SPDX-License-Identifier: Apache-2.0
 *
 * wire/syscalls.h - the names of system calls, for people and receipts.
 *
 * Generated at build time for the machine that is built for. */
#pragma once

#include <stdint.h>

/* "mount" for 165; NULL for a number that we do not know. */
const char *syscall_name(uint32_t nr);
