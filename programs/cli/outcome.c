/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome.h"

#include "base/auto.h"
#include "base/quantity.h"
#include "cli.h"
#include "wire/syscalls.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void sentence(struct outcome_note *note, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void sentence(struct outcome_note *note, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(note->sentence, sizeof(note->sentence), fmt, args);
	va_end(args);
}

static const char *signal_name(uint32_t signal)
{
	const char *name = signal < NSIG ? sigabbrev_np((int)signal) : NULL;

	return name ? name : "?";
}

static void tell_exited(const struct ending *e, struct outcome_note *note)
{
	if (!e->not_started) {
		note->number = e->value;
		sentence(note, "The program ended with exit code %u.", e->value);
	} else if (e->start_errno == ENOENT) {
		sentence(note,
			 "The program '%s' was not found in the sandbox. Check its name; only "
			 "what lies in the sandbox can be run.",
			 e->program);
	} else {
		sentence(note, "The program '%s' could not be executed: %s.", e->program,
			 strerrordesc_np(e->start_errno) ? strerrordesc_np(e->start_errno)
							 : "error");
	}
}

static void tell_signaled(const struct ending *e, struct outcome_note *note)
{
	note->number = e->value;
	if (e->value == SIGSYS)
		sentence(note,
			 "The program was stopped by SIGSYS: it made a system call of a foreign "
			 "architecture, which the sandbox does not allow.");
	else
		sentence(note, "The program was ended by signal %u (SIG%s).", e->value,
			 signal_name(e->value));
}

static void tell_timeout(const struct ending *e, struct outcome_note *note)
{
	char limit[QUANTITY_TEXT];

	note->number = e->wall_ms;
	note->limit = e->limits.wall_ms;
	sentence(note,
		 "Time: the program did not end within the limit of %s and was stopped. Do less "
		 "at once, or ask for more time (--timeout).",
		 quantity_show_duration(limit, e->limits.wall_ms));
}

static void tell_cpu_time(const struct ending *e, struct outcome_note *note)
{
	char limit[QUANTITY_TEXT];

	note->number = e->usage.cpu_us / 1000;
	note->limit = e->limits.cpu_time_ms;
	sentence(note,
		 "CPU time: the program used up the limit of %s of processor time and was "
		 "stopped. Look for a loop that does not end, or ask for more (--cpu-time).",
		 quantity_show_duration(limit, e->limits.cpu_time_ms));
}

/* Killed and by nobody of ours: then the program itself was the victim. */
static bool main_was_killed(const struct ending *e)
{
	return e->sandbox_lost ||
	       (e->is_over && e->signaled && e->value == SIGKILL && !e->timed_out && !e->cancelled);
}

static void tell_oom(const struct ending *e, struct outcome_note *note)
{
	char limit[QUANTITY_TEXT];
	bool watched = e->by.memory == BY_WATCHER || e->by.memory == BY_RLIMIT;

	note->number = e->usage.peak_memory_bytes;
	note->limit = e->limits.memory_bytes;
	quantity_show_size(limit, e->limits.memory_bytes);
	sentence(note,
		 "Memory: %s reached the %s limit and %s stopped.%s Read the file in chunks, or "
		 "ask for more memory (--memory).",
		 main_was_killed(e) ? "the process" : "a child process", limit,
		 main_was_killed(e) ? "was" : "was itself",
		 watched ? " (Without cgroup rights this is seen by looking, so it may come late.)"
			 : "");
}

static void tell_interrupted(const struct ending *e, struct outcome_note *note)
{
	(void)e;
	sentence(note, "The program was interrupted (Ctrl-C).");
}

static void tell_cancelled(const struct ending *e, struct outcome_note *note)
{
	note->number = (uint64_t)e->cancel_signal;
	if (e->cancel_signal == SIGPIPE)
		sentence(note, "The run was cancelled: nobody reads its output any more.");
	else
		sentence(note,
			 "The run was cancelled by SIG%s; everything in the sandbox was stopped.",
			 signal_name((uint32_t)e->cancel_signal));
}

static void tell_lost(const struct ending *e, struct outcome_note *note)
{
	(void)e;
	sentence(note,
		 "The sandbox ended under the running program. Try again; when it happens again, "
		 "`cay doctor` may say why.");
}

static void tell_setup_failed(const struct ending *e, struct outcome_note *note)
{
	note->number = (uint64_t)e->setup.errnum;
	sentence(note, "The sandbox could not be set up, nothing was run: %.500s.", e->setup.text);
}

static void tell_closed(const struct ending *e, struct outcome_note *note)
{
	(void)e;
	sentence(note, "The session was closed while the program ran.");
}

static void tell_evicted(const struct ending *e, struct outcome_note *note)
{
	(void)e;
	sentence(note,
		 "The machine ran short and gave the place to somebody else. Try again later.");
}

static void tell_restarted(const struct ending *e, struct outcome_note *note)
{
	(void)e;
	sentence(note, "The service was restarted while the program ran. Try again.");
}

static const struct {
	const char *name;
	bool retryable;
	void (*tell)(const struct ending *, struct outcome_note *);
} causes[CAUSES_] = {
	[CAUSE_EXITED] = { "exited", false, tell_exited },
	[CAUSE_SIGNALED] = { "signaled", false, tell_signaled },
	[CAUSE_TIMEOUT] = { "timeout", false, tell_timeout },
	[CAUSE_CPU_TIME] = { "cpu_time", false, tell_cpu_time },
	[CAUSE_OOM] = { "oom", false, tell_oom },
	[CAUSE_INTERRUPTED] = { "interrupted", true, tell_interrupted },
	[CAUSE_CANCELLED] = { "cancelled", true, tell_cancelled },
	[CAUSE_SESSION_CLOSED] = { "session_closed", true, tell_closed },
	[CAUSE_KERNEL_DIED] = { "kernel_died", true, tell_lost },
	[CAUSE_SETUP_FAILED] = { "setup_failed", false, tell_setup_failed },
	[CAUSE_EVICTED] = { "evicted", true, tell_evicted },
	[CAUSE_SERVICE_RESTARTED] = { "service_restarted", true, tell_restarted },
};

const char *cause_name(enum cause cause)
{
	return causes[cause].name;
}

static bool ended_by_interrupt(const struct ending *e)
{
	return e->interrupted && e->is_over &&
	       e->value == (e->signaled ? (uint32_t)SIGINT : (uint32_t)EXIT_SIGNAL + SIGINT);
}

static bool hit_cpu_time(const struct ending *e)
{
	return e->usage.cpu_time_hit && e->limits.cpu_time_ms > 0;
}

/* The first that is true.  Memory comes before time: a program that lost a child to the memory
 * limit often hangs until its time is over, and memory is what must be mended. */
static enum cause decide_cause(const struct ending *e)
{
	if (e->setup_failed)
		return CAUSE_SETUP_FAILED;
	if (e->usage.oom_kills > 0)
		return CAUSE_OOM;
	if (e->cancelled)
		return CAUSE_CANCELLED;
	if (hit_cpu_time(e))
		return CAUSE_CPU_TIME;
	if (e->timed_out)
		return CAUSE_TIMEOUT;
	if (ended_by_interrupt(e))
		return CAUSE_INTERRUPTED;
	if (e->not_started)
		return CAUSE_EXITED;
	if (!e->is_over)
		return CAUSE_KERNEL_DIED;
	return e->signaled ? CAUSE_SIGNALED : CAUSE_EXITED;
}

static int decide_exit_code(const struct ending *e, enum cause cause)
{
	if (cause == CAUSE_SETUP_FAILED)
		return EXIT_CAY_FAILED;
	if (e->cancelled)
		return EXIT_SIGNAL + e->cancel_signal;
	if (hit_cpu_time(e) || e->timed_out)
		return EXIT_RAN_TOO_LONG;
	if (e->not_started)
		return e->start_errno == ENOENT ? EXIT_NO_COMMAND : EXIT_NOT_EXECUTABLE;
	if (cause == CAUSE_OOM && !e->is_over)
		return EXIT_SIGNAL + SIGKILL;
	if (!e->is_over)
		return EXIT_CAY_FAILED;
	return e->signaled ? EXIT_SIGNAL + (int)e->value : (int)e->value;
}

static struct outcome_note *add_flag(struct outcome *outcome, const char *name, uint64_t number,
				     uint64_t limit)
{
	struct outcome_note *flag = &outcome->flags[outcome->n_flags++];

	*flag = (struct outcome_note){ .name = name, .number = number, .limit = limit };
	return flag;
}

static void flag_output(const struct ending *e, struct outcome *outcome)
{
	uint64_t dropped = e->dropped_bytes[0] + e->dropped_bytes[1];
	char limit[QUANTITY_TEXT];

	if (dropped == 0)
		return;
	sentence(add_flag(outcome, "output_truncated", dropped, e->limits.output_bytes),
		 "Output: %llu bytes of stdout and %llu of stderr were dropped from the middle; %s "
		 "of "
		 "each are kept. Print less, write to a file, or raise --output.",
		 (unsigned long long)e->dropped_bytes[0], (unsigned long long)e->dropped_bytes[1],
		 quantity_show_size(limit, e->limits.output_bytes));
}

static void flag_pids(const struct ending *e, struct outcome *outcome)
{
	if (e->usage.pids_denied == 0)
		return;
	sentence(add_flag(outcome, "pids", e->usage.pids_denied, e->limits.pids),
		 "Processes: %llu new %s refused at the limit of %u. Start fewer, or ask for more "
		 "(--pids).",
		 (unsigned long long)e->usage.pids_denied,
		 e->usage.pids_denied == 1 ? "process or thread was" : "processes or threads were",
		 e->limits.pids);
}

static void flag_disk(const struct ending *e, struct outcome *outcome)
{
	char limit[QUANTITY_TEXT];

	if (!e->usage.disk_full)
		return;
	sentence(add_flag(outcome, "disk", e->usage.disk_bytes, e->limits.disk_bytes),
		 "Disk: the workspace reached its limit of %s or %llu files, and writes failed. "
		 "Delete "
		 "what is not needed, or ask for more (--disk).",
		 quantity_show_size(limit, e->limits.disk_bytes),
		 (unsigned long long)e->limits.disk_files);
}

/* Where memory shall lie is advice: libraries try these and can do without (numpy: mbind). */
static bool is_advisory(const char *call)
{
	static const char *const calls[] = { "mbind",         "set_mempolicy",
					     "get_mempolicy", "move_pages",
					     "migrate_pages", "set_mempolicy_home_node" };

	for (size_t i = 0; call && i < ARRAY_LEN(calls); i++)
		if (strcmp(call, calls[i]) == 0)
			return true;
	return false;
}

static void flag_denied(const struct ending *e, struct outcome *outcome)
{
	char names[256];
	size_t used = 0;
	uint64_t times = 0;
	bool minor = true;

	if (e->n_denied == 0)
		return;
	names[0] = '\0';
	for (size_t i = 0; i < e->n_denied; i++) {
		const char *name = syscall_name(e->denied[i].nr);
		times += e->denied[i].times;
		minor = minor && is_advisory(name);
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? ", " : "", name ? name : "unknown");
	}
	struct outcome_note *flag = add_flag(outcome, "syscall_denied", times, 0);
	flag->is_minor = minor;
	sentence(flag, "System calls: %llu %s refused (%s)%s.", (unsigned long long)times,
		 times == 1 ? "call was" : "calls were", names,
		 outcome->exit_code ? "; this need not be why the program failed" : "");
}

/* What also happened beside the cause. */
static void flag_beside(const struct ending *e, struct outcome *outcome)
{
	if (outcome->cause == CAUSE_OOM && e->timed_out)
		tell_timeout(e, add_flag(outcome, "timeout", 0, 0));
}

void outcome_decide(const struct ending *ending, struct outcome *ret_outcome)
{
	struct outcome outcome = { .cause = decide_cause(ending) };

	outcome.note.name = causes[outcome.cause].name;
	outcome.note.retryable = causes[outcome.cause].retryable;
	causes[outcome.cause].tell(ending, &outcome.note);
	outcome.exit_code = decide_exit_code(ending, outcome.cause);
	outcome.is_notable = outcome.cause != CAUSE_EXITED || ending->not_started;
	flag_beside(ending, &outcome);
	flag_output(ending, &outcome);
	flag_pids(ending, &outcome);
	flag_disk(ending, &outcome);
	flag_denied(ending, &outcome);
	*ret_outcome = outcome;
}
