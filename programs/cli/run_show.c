/* SPDX-License-Identifier: Apache-2.0
 *
 * What is shown after the program ended: the ends of long streams, and why it ended. */
#include "run_show.h"

#include "base/auto.h"
#include "base/clock.h"
#include "run.h"
#include "say.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define SHOW_GRACE_MS 1000
#define PIECE 4096

/* Gives up when the reader has stopped reading. */
static int show(int fd, const uint8_t *data, size_t len, int64_t deadline_ms)
{
	while (len > 0) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		int64_t left = deadline_ms - clock_mono_ms();
		left = left < SHOW_GRACE_MS ? SHOW_GRACE_MS : left > 60000 ? 60000 : left;
		if (poll(&p, 1, (int)left) == 0)
			return -ETIMEDOUT;
		ssize_t n = write(fd, data, len < PIECE ? len : PIECE);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

void run_show_rest(struct run *run)
{
	static const char *const names[STREAMS] = { "stdout", "stderr" };

	for (int i = 0; i < STREAMS; i++) {
		const uint8_t *pieces[2];
		size_t lens[2];
		const struct output *output = &run->streams[i];
		char note[96];

		/* Whoever did not take the head does not want the tail. */
		if (!output->ring || output_waiting(output) > 0)
			continue;
		int fd = i == STREAM_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
		uint64_t dropped = output_dropped(output);
		snprintf(note, sizeof(note), "\n[cay: %llu bytes of %s dropped]\n",
			 (unsigned long long)dropped, names[i]);
		if (dropped > 0)
			(void)show(STDERR_FILENO, (const uint8_t *)note, strlen(note),
				   run->deadline_ms);
		output_tail(output, pieces, lens);
		int r = show(fd, pieces[0], lens[0], run->deadline_ms);
		if (r == 0)
			r = show(fd, pieces[1], lens[1], run->deadline_ms);
		if (r < 0 && r != -EPIPE)
			run->write_errno = -r;
	}
}

static bool is_worth_a_line(const struct outcome *outcome, const struct outcome_note *flag)
{
	/* Told already, where the bytes are missing. */
	if (strcmp(flag->name, "output_truncated") == 0)
		return false;
	if (flag->is_minor)
		return false;
	/* To a program that ended well a refusal made no difference; the receipt has it. */
	return strcmp(flag->name, "syscall_denied") != 0 || outcome->exit_code != 0;
}

void run_show_outcome(const struct run *run)
{
	const struct outcome *outcome = &run->outcome;

	if (outcome->is_notable)
		say_warning("%s", outcome->note.sentence);
	for (size_t i = 0; i < outcome->n_flags; i++)
		if (is_worth_a_line(outcome, &outcome->flags[i]))
			say_warning("%s", outcome->flags[i].sentence);
}

static double ms(int64_t from, int64_t to)
{
	return to > from && from > 0 ? (double)(to - from) / 1000 : 0;
}

void run_show_times(const struct run *run)
{
	const struct run_times *t = &run->times;

	say("plan %.2f ms, spawn %.2f, sandbox %.2f (%llu us in the warden), program %.2f, results "
	    "%.2f, stop %.2f, receipt %.2f; whole %.2f ms",
	    ms(t->start, t->planned), ms(t->planned, t->spawned), ms(t->spawned, t->sandbox),
	    (unsigned long long)run->facts.setup_us, ms(t->program, t->end),
	    ms(t->end, t->collected), ms(t->collected, t->stopped), ms(t->stopped, t->signed_),
	    ms(t->start, t->signed_));
}
