/* SPDX-License-Identifier: Apache-2.0 */
#include "notify.h"

#include "wire/agent.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#define SLICE_MS 10
#define ANSWERS_PER_SLICE 64
#define TELL_MS 250

_Static_assert(NOTIFY_CALLS + 1 <= AGENT_DENIED_MAX, "every count fits one AGENT_DENIED");

void notify_init(struct notify *notify, int fd)
{
	*notify = (struct notify){ .fd = fd, .budget = ANSWERS_PER_SLICE };
}

bool notify_is_wanted(struct notify *notify, int64_t now_ms)
{
	if (now_ms >= notify->slice_ms + SLICE_MS) {
		notify->slice_ms = now_ms;
		notify->budget = ANSWERS_PER_SLICE;
	}
	return notify->fd >= 0 && notify->budget > 0;
}

static void count(struct notify *notify, int nr)
{
	unsigned slot = nr >= 0 && nr < NOTIFY_CALLS ? (unsigned)nr : NOTIFY_CALLS;

	if (notify->times[slot] < UINT32_MAX)
		notify->times[slot]++;
	notify->dirty = true;
}

/* Takes one and answers it.  0 when there was none or the listener is of no more use. */
static int answer_one(struct notify *notify)
{
	struct seccomp_notif ask;
	struct pollfd p = { .fd = notify->fd, .events = POLLIN };

	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLIN))
		return 0;
	memset(&ask, 0, sizeof(ask)); /* the kernel insists on it */
	if (ioctl(notify->fd, SECCOMP_IOCTL_NOTIF_RECV, &ask) < 0)
		return errno == ENOENT || errno == EINTR; /* the caller died while it waited */
	count(notify, ask.data.nr);
	struct seccomp_notif_resp answer = { .id = ask.id, .error = -EPERM };
	(void)ioctl(notify->fd, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* likewise */
	return 1;
}

void notify_answer(struct notify *notify)
{
	while (notify->budget > 0 && answer_one(notify))
		notify->budget--;
}

void notify_tell(struct notify *notify, struct out *out, int64_t now_ms, bool now)
{
	uint32_t n = 0;

	if (!notify->dirty || !out_is_open(out) || (!now && now_ms < notify->told_ms + TELL_MS))
		return;
	for (unsigned i = 0; i <= NOTIFY_CALLS; i++)
		n += notify->times[i] > 0;

	struct pack pack = out_begin(out);
	pack_u32(&pack, n);
	for (unsigned i = 0; i <= NOTIFY_CALLS; i++) {
		if (notify->times[i] == 0)
			continue;
		pack_u32(&pack, i < NOTIFY_CALLS ? i : AGENT_DENIED_OTHER);
		pack_u32(&pack, notify->times[i]);
		notify->times[i] = 0;
	}
	out_end(out, AGENT_DENIED, 0, &pack);
	notify->dirty = false;
	notify->told_ms = now_ms;
}

int64_t notify_deadline(const struct notify *notify, bool can_tell)
{
	int64_t at = INT64_MAX;

	if (notify->dirty && can_tell)
		at = notify->told_ms + TELL_MS;
	if (notify->fd >= 0 && notify->budget == 0 && notify->slice_ms + SLICE_MS < at)
		at = notify->slice_ms + SLICE_MS;
	return at;
}
