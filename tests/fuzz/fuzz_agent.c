/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent believes of a client: type, channel, payload of one frame. */
#include "request.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t length(char *const *texts)
{
	size_t sum = 0;

	for (; *texts; texts++)
		sum += strlen(*texts) + 1;
	return sum;
}

static void look(const struct request *request, size_t size)
{
	switch (request->type) {
	case AGENT_EXEC:
		if (!request->exec.argv[0] || request->exec.cwd[0] != '/' ||
		    length(request->exec.argv) + length(request->exec.envp) > size)
			abort();
		break;
	case AGENT_SIGNAL:
		if (request->signal.number < 1 || request->signal.number > 64)
			abort();
		break;
	case AGENT_READ:
	case AGENT_WRITE:
	case AGENT_LIST:
		if (strlen(request->read.path) == 0 || strlen(request->read.path) > AGENT_PATH_MAX)
			abort();
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct request_space *space;
	struct request request;
	struct err err;

	if (!space)
		space = malloc(sizeof(*space));
	if (!space || size < 2 || size > FRAME_PAYLOAD_MAX)
		return 0;
	uint8_t *payload = malloc(size); /* a copy of its own, so that its end is guarded */
	if (!payload)
		return 0;
	memcpy(payload, data + 2, size - 2);
	struct frame frame = {
		.len = (uint32_t)size - 2, .type = data[0], .channel = data[1], .payload = payload
	};
	if (request_parse(&frame, space, &request, &err) == 0)
		look(&request, size);
	else if (err.errnum <= 0 || strlen(err.text) == 0)
		abort();
	free(payload);
	return 0;
}
