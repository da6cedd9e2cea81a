/* SPDX-License-Identifier: Apache-2.0
 *
 * caps.h - all privileges go, for good.  Usable between clone and exec. */
#pragma once

struct err;

/* From now on no change of uid and no exec brings a capability back, or takes one away. */
int caps_lock(struct err *err);

/* Empties every capability set, the bounding one too. */
int caps_drop(struct err *err);

int caps_no_new_privs(struct err *err);
