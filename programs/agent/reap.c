/* SPDX-License-Identifier: Apache-2.0 */
#include "reap.h"

#include "process.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define REAP_PER_ROUND 4096
#define KILL_AGAIN_MS 5
#define KILL_GIVE_UP_MS 5000

static void record(struct sandbox *sandbox, pid_t pid, int status, const struct rusage *usage)
{
	for (unsigned i = 0; i < AGENT_CHANNELS; i++) {
		struct channel *channel = &sandbox->channels[i];
		if (channel->kind == CHANNEL_PROCESS && channel->process.pid == pid &&
		    !channel->process.reaped) {
			process_ended(sandbox, channel, status, usage);
			return;
		}
	}
}

void reap_all(struct sandbox *sandbox)
{
	for (int i = 0; i < REAP_PER_ROUND; i++) {
		struct rusage usage;
		int status;
		pid_t pid = wait4(-1, &status, WNOHANG, &usage);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid <= 0)
			return;
		record(sandbox, pid, status, &usage);
	}
	sandbox->again = true;
}

int reap_signal_all(struct sandbox *sandbox, int number, struct err *err)
{
	/* Outside a pid namespace of our own this would reach the whole machine. */
	if (getpid() != 1)
		return err_make(err, ERR_UNSUPPORTED, "the agent is not PID 1");
	if (number == SIGKILL) {
		sandbox->killing.active = true;
		sandbox->killing.until_ms = sandbox->now_ms + KILL_GIVE_UP_MS;
		return 0;
	}
	if (kill(-1, number) < 0 && errno != ESRCH)
		return err_errno(err, errno, "send signal %d to all", number);
	return 0;
}

void reap_kill_pump(struct sandbox *sandbox)
{
	struct err err;

	if (!sandbox->killing.active || !out_is_open(&sandbox->out))
		return;
	bool gone = kill(-1, SIGKILL) < 0 && errno == ESRCH;
	if (!gone && sandbox->now_ms < sandbox->killing.until_ms) {
		reap_all(sandbox);
		return;
	}
	sandbox->killing.active = false;
	if (gone) {
		out_done(&sandbox->out, 0, 0);
		return;
	}
	err_make(&err, ERR_TIMEOUT, "processes are left %d ms after SIGKILL", KILL_GIVE_UP_MS);
	out_failed(&sandbox->out, 0, &err);
}

int64_t reap_deadline(const struct sandbox *sandbox)
{
	return sandbox->killing.active ? sandbox->now_ms + KILL_AGAIN_MS : INT64_MAX;
}
