/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's door: requests of a client that may be anybody.  The input is a byte of flags and
 * then packets, each behind its length in two bytes.  The tier behind the door is a fake that
 * starts nothing, and checks what it is given. */
#include "../unit/fake_backend.h"
#include "sandbox.h"
#include "serve.h"

#include "base/id.h"

#include <stdbool.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sum; /* so that what is read is not left out */

/* What a backend may rely on; the strings end, and no path leads out. */
static void look(const struct warden_create *create, bool may_name_paths)
{
	struct err err;

	if (limits_check(&create->limits, &err) < 0 || create->tier != TIER_JAIL)
		abort();
	if (create->n_binds > 0 && !may_name_paths)
		abort();
	for (uint32_t i = 0; i < create->n_binds; i++) {
		const struct warden_bind *bind = &create->binds[i];
		const char *source = create->strings + bind->source;
		const char *target = create->strings + bind->target;
		if (source[0] != '/' || strstr(source, "/../"))
			abort();
		if (bind->kind == BIND_TREE && target[0] != '/')
			abort();
		if (bind->kind == BIND_INPUT && (strchr(target, '/') || target[0] == '.'))
			abort();
		sum += strlen(source) + strlen(target) + strlen(create->strings + bind->over);
	}
}

/* The packet is exactly as long as it says, so that a byte too many is seen. */
static void ask(struct peer *peer, const uint8_t *data, size_t len)
{
	struct packet *packet = malloc(len ? len : 1);
	struct warden_reply reply;
	bool greeted = peer->said_hello;
	int fd = 7;

	if (!packet)
		abort();
	memcpy(packet, data, len);
	serve_request(peer, packet, len, &reply, &fd);
	if (fd != -1)
		abort();
	if (reply.failed) {
		if (reply.err.kind < 0 || reply.err.kind >= ERR_KINDS_ || reply.err.errnum <= 0 ||
		    !memchr(reply.err.text, 0, sizeof(reply.err.text)))
			abort();
	} else if (packet->request.ask != WARDEN_HELLO) {
		if (!greeted || !id_is_valid(packet->request.sandbox_id, ID_SANDBOX))
			abort();
		if (packet->request.ask == WARDEN_CREATE)
			look(&packet->create, peer->may_name_paths);
	}
	free(packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const steps[] = { NULL, "start", "kill", "stats" };

	if (size < 1)
		return 0;
	struct peer peer = { .fd = -1, .said_hello = data[0] & 1, .may_name_paths = data[0] & 2 };
	fake.fail = steps[data[0] >> 2 & 3];
	for (size_t at = 1; at + 2 <= size;) {
		size_t len = (size_t)data[at] | (size_t)data[at + 1] << 8;
		at += 2;
		if (len > size - at)
			len = size - at;
		if (len > sizeof(struct packet))
			len = sizeof(struct packet);
		ask(&peer, data + at, len);
		at += len;
		if (len & 1)
			sandbox_sweep();
	}
	sandbox_sweep();
	sandbox_destroy_all();
	if (fake.jails != 0 || sandbox_any())
		abort();
	return 0;
}
