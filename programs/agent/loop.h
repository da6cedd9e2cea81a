/* SPDX-License-Identifier: Apache-2.0
 *
 * loop.h - one thread, one poll(): who is heard, and who has to wait. */
#pragma once

#include "sandbox.h"

/* Serves until the client is gone: 0, or -errno when it broke the rules of the stream. */
int loop_run(struct sandbox *sandbox);
