/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox.h"

#define RETURN_AT (AGENT_STDIN_WINDOW / 4)

void channel_free(struct channel *channel)
{
	channel->kind = CHANNEL_FREE;
	channel->credit = 0;
	channel->ready = 0;
}

void channel_return_credit(struct channel *channel, struct out *out)
{
	if (channel->owed == 0 || !out_is_open(out))
		return;
	if (channel->owed < RETURN_AT && channel->inbox_len > 0)
		return;
	struct pack pack = out_begin(out);
	pack_u32(&pack, channel->owed);
	out_end(out, AGENT_CREDIT, channel->id, &pack);
	channel->window += channel->owed;
	channel->owed = 0;
}
