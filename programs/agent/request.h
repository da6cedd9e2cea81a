/* SPDX-License-Identifier: Apache-2.0
 *
 * request.h - what a client's frame asks for, checked and bounded; nothing is done yet.
 *
 * A pure function of the frame's bytes, so that it can be fuzzed without a sandbox. */
#pragma once

#include "wire/agent.h"

#include <stddef.h>
#include <stdint.h>

/* Where the strings of the request being handled live; until the next request. */
struct request_space {
	char *argv[AGENT_ARGS_MAX + 1];
	char *envp[AGENT_ARGS_MAX + 1];
	/* A text of n bytes takes 4 + n on the wire and n + 1 here. */
	char text[FRAME_PAYLOAD_MAX];
	size_t used;
};

struct request {
	uint16_t type; /* enum agent_frame */
	uint32_t channel;
	union {
		struct {
			uint32_t flags, rows, columns;
			char **argv, **envp; /* end with NULL */
			const char *cwd;     /* absolute */
		} exec;
		struct {
			const uint8_t *data; /* in the frame */
			size_t len;
		} data;
		struct {
			int number;
			uint32_t scope; /* enum agent_scope */
		} signal;
		uint32_t credit;
		struct {
			const char *path;
			uint64_t offset, length;
		} read;
		struct {
			const char *path;
			uint32_t mode, flags;
		} write;
		struct {
			const char *path;
			uint32_t depth, max;
		} list;
		struct {
			uint32_t rows, columns;
		} resize;
		uint64_t done; /* bytes that the client says it sent */
	};
};

int request_parse(const struct frame *frame, struct request_space *space,
		  struct request *ret_request, struct err *err);
