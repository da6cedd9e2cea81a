/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlayer.h - the few things of the host's / and /etc that programs in /usr cannot do without.
 *
 * /bin and its like as links, the loader's cache, certificates, alternatives, fonts: copied once
 * into the state directory, made anew when one of them changes.  Nothing else of /etc is taken. */
#pragma once

#include <stddef.h>

struct err;

/* Where the copy lies, absolute; makes it first when it is missing.  In it `root` is what comes
 * from the host, and `base` what every root file system has (template.h). */
int hostlayer_ensure(const char *state_dir, char *ret_path, size_t size, struct err *err);
