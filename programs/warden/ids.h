/* SPDX-License-Identifier: Apache-2.0
 *
 * ids.h - which host uids the sandboxes get.
 *
 * As root: a slot of 65536 uids of its own for each, from 1879048192 up.  As a user with ranges in
 * /etc/subuid and newuidmap: a slice of that range.  Else: the user's one uid.  A slot is leased
 * by a lock that the kernel drops with its holder, so none is ever lost. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define IDS_INSIDE_UID 1000u /* what the code runs as, in its own user namespace */

enum ids_mode {
	IDS_ROOT,
	IDS_RANGES,
	IDS_SINGLE,
};

struct ids {
	enum ids_mode mode;
	uint32_t uid_first, gid_first; /* host ids of the first slot */
	uint32_t slot_size, n_slots;
	uid_t own_uid;
	gid_t own_gid;
	int lease_fd; /* holds the lock */
};

/* Leases n_slots neighbouring slots, or fewer where a user has only so many. */
int ids_lease(struct ids *ids, uint32_t n_slots, struct err *err);
void ids_release(struct ids *ids);

/* Writes the maps of U, the outer user namespace, for the process pid in it. */
int ids_map_outer(const struct ids *ids, pid_t pid, struct err *err);

/* Writes the maps of a sandbox in the slot, for the process pid, as seen from U.  own_user: the
 * sandbox's uid 1000 is the user himself, so that his directory can be written to. */
int ids_map_sandbox(const struct ids *ids, uint32_t slot, bool own_user, int proc_fd, pid_t pid,
		    struct err *err);

/* What the sandbox's uid 1000 is on the host. */
uid_t ids_host_uid(const struct ids *ids, uint32_t slot, bool own_user);
gid_t ids_host_gid(const struct ids *ids, uint32_t slot, bool own_user);

/* The first host uid of the slot: its uid 0, or the user's one uid. */
uid_t ids_first_uid(const struct ids *ids, uint32_t slot);

/* What the sandbox's uid 1000 is in U. */
uid_t ids_outer_id(const struct ids *ids, uint32_t slot, bool own_user);

/* The expected content of the sandbox's uid_map, as U reads it. */
void ids_expect_map(const struct ids *ids, uint32_t slot, bool own_user, char *ret_text,
		    size_t size);
