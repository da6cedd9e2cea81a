/* SPDX-License-Identifier: Apache-2.0
 *
 * serve.h - the door of the warden: the only foreign bytes it reads. */
#pragma once

#include "wire/warden.h"

#include <stdbool.h>
#include <stddef.h>

struct peer {
	int fd;
	bool said_hello;
	bool may_name_paths; /* it started us itself and is the same user */
};

/* One request as it came over the wire. */
struct packet {
	struct warden_request request;
	struct warden_create create;
};

/* Answers one request of len bytes.  A descriptor to send along goes to *ret_fd, else -1. */
void serve_request(struct peer *peer, const struct packet *packet, size_t len,
		   struct warden_reply *ret_reply, int *ret_fd);
