/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime_debian.h - libraries of the system's Python where there is no package index: Debian's
 * own packages.  They become part of /usr, so there is no layer to lay over it. */
#pragma once

struct build;
struct err;

/* After pip failed: says that they are there, installs them as root, or says the command.
 * Returns the exit code. */
int debian_add(struct build *build, struct err *err);
