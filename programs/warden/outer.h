/* SPDX-License-Identifier: Apache-2.0
 *
 * outer.h - U, the outer namespace in which launchers and sandboxes live.
 *
 * Its root is a small tmpfs: /proc, a fully visible procfs of U's own pid namespace, without which
 * no sandbox could mount one; /l/N, the layers; /t/N, the templates; /e, an empty directory; /n,
 * where a sandbox hangs its new root; and for an ordinary user /host, the host's tree, out of
 * which he may show what he may see.  As root there is no /host: layers come as descriptors. */
#pragma once

#include <stdbool.h>

struct err;

/* In a fresh user, mount and pid namespace with its maps written, as its first process. */
int outer_enter(bool with_host, struct err *err);

/* A network namespace that U owns, with the loopback up and no route.  The caller moves into it. */
int outer_new_network(struct err *err);
