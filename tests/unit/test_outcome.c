/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome.h"

#include "base/auto.h"
#include "check.h"

#include <errno.h>
#include <signal.h>

static struct ending ending(void)
{
	return (struct ending){
		.is_over = true,
		.limits = profile_find(NULL)->limits,
		.by = { .memory = BY_CGROUP2 },
	};
}

static struct outcome decide(const struct ending *e)
{
	struct outcome outcome;

	outcome_decide(e, &outcome);
	CHECK(outcome.note.sentence[0] != '\0');
	return outcome;
}

#define CHECK_END(e, cause_, code)                                                                 \
	do {                                                                                       \
		struct outcome o_ = decide(&(e));                                                  \
		CHECK_STR(cause_name(o_.cause), cause_);                                           \
		CHECK_INT(o_.exit_code, code);                                                     \
	} while (0)

TEST(outcome_passes_the_exit_code_on)
{
	struct ending e = ending();

	CHECK_END(e, "exited", 0);
	CHECK(!decide(&e).is_notable);
	e.value = 127;
	CHECK_END(e, "exited", 127);
	CHECK(!decide(&e).is_notable);
}

TEST(outcome_signals_are_128_plus_n)
{
	struct ending e = ending();

	e.signaled = true;
	e.value = SIGSEGV;
	CHECK_END(e, "signaled", 139);
	CHECK(strstr(decide(&e).note.sentence, "signal 11 (SIGSEGV)") != NULL);
	CHECK(decide(&e).is_notable);
}

TEST(outcome_timeout_is_124_and_names_the_limit)
{
	struct ending e = ending();

	e.signaled = e.timed_out = true;
	e.value = SIGKILL;
	e.wall_ms = 120003;
	CHECK_END(e, "timeout", 124);
	struct outcome o = decide(&e);
	CHECK_INT(o.note.number, 120003);
	CHECK_INT(o.note.limit, 120000);
	CHECK(strstr(o.note.sentence, "120 s") != NULL);
}

TEST(outcome_cpu_time_is_124)
{
	struct ending e = ending();

	e.signaled = true;
	e.value = SIGKILL;
	e.limits.cpu_time_ms = 1500;
	e.usage.cpu_time_hit = 1;
	e.usage.cpu_us = 1510000;
	CHECK_END(e, "cpu_time", 124);
	CHECK_INT(decide(&e).note.number, 1510);
}

TEST(outcome_oom_of_the_program_is_137)
{
	struct ending e = ending();

	e.signaled = true;
	e.value = SIGKILL;
	e.usage.oom_kills = 1;
	CHECK_END(e, "oom", 137);
	CHECK_STR(
		decide(&e).note.sentence,
		"Memory: the process reached the 1024 MiB limit and was stopped. Read the file in "
		"chunks, or ask for more memory (--memory).");
}

TEST(outcome_oom_of_a_child_keeps_the_programs_exit_code)
{
	struct ending e = ending();

	e.value = 3;
	e.usage.oom_kills = 1;
	CHECK_END(e, "oom", 3);
	CHECK(strstr(decide(&e).note.sentence, "a child process") != NULL);
}

TEST(outcome_oom_that_took_the_sandbox_with_it_is_137)
{
	struct ending e = ending();

	e.is_over = false;
	e.sandbox_lost = true;
	e.usage.oom_kills = 1;
	CHECK_END(e, "oom", 137);
}

TEST(outcome_memory_comes_before_time)
{
	struct ending e = ending();

	e.timed_out = e.signaled = true;
	e.value = SIGKILL;
	e.usage.oom_kills = 2;
	CHECK_END(e, "oom", 124);
	struct outcome o = decide(&e);
	CHECK_INT(o.n_flags, 1);
	CHECK_STR(o.flags[0].name, "timeout");
}

TEST(outcome_interrupt_counts_only_when_it_ended_the_program)
{
	struct ending e = ending();

	e.interrupted = true;
	CHECK_END(e, "exited", 0);
	e.signaled = true;
	e.value = SIGINT;
	CHECK_END(e, "interrupted", 130);
	e.signaled = false;
	e.value = 130;
	CHECK_END(e, "interrupted", 130);
}

TEST(outcome_cancel_is_128_plus_the_signal)
{
	struct ending e = ending();

	e.interrupted = e.cancelled = e.signaled = true;
	e.value = SIGKILL;
	e.cancel_signal = SIGINT;
	CHECK_END(e, "cancelled", 130);
	e.cancel_signal = SIGTERM;
	CHECK_END(e, "cancelled", 143);
}

TEST(outcome_not_found_is_127_and_not_executable_126)
{
	struct ending e = ending();

	e.is_over = false;
	e.not_started = true;
	strcpy(e.program, "nosuch");
	e.start_errno = ENOENT;
	CHECK_END(e, "exited", 127);
	CHECK(strstr(decide(&e).note.sentence, "'nosuch' was not found") != NULL);
	e.start_errno = EACCES;
	CHECK_END(e, "exited", 126);
	CHECK(strstr(decide(&e).note.sentence, "Permission denied") != NULL);
	CHECK(decide(&e).is_notable);
}

TEST(outcome_a_lost_sandbox_is_said)
{
	struct ending e = ending();

	e.is_over = false;
	e.sandbox_lost = true;
	CHECK_END(e, "kernel_died", 125);
	CHECK(decide(&e).note.retryable);
}

TEST(outcome_setup_failure_carries_its_reason)
{
	struct ending e = { .setup_failed = true };

	err_make(&e.setup, ERR_SETUP, "the layer 'seccomp' did not take hold");
	CHECK_END(e, "setup_failed", 125);
	CHECK(strstr(decide(&e).note.sentence, "'seccomp'") != NULL);
}

TEST(outcome_flags_have_numbers_and_limits)
{
	struct ending e = ending();

	e.usage.pids_denied = 9;
	e.usage.disk_full = 1;
	e.usage.disk_bytes = 77;
	e.dropped_bytes[0] = 5;
	e.dropped_bytes[1] = 6;
	e.denied[0] = (struct denied_call){ 165, 3 };
	e.denied[1] = (struct denied_call){ 0xffffffff, 1 };
	e.n_denied = 2;
	struct outcome o = decide(&e);
	CHECK_INT(o.n_flags, 4);
	CHECK_STR(o.flags[0].name, "output_truncated");
	CHECK_INT(o.flags[0].number, 11);
	CHECK_STR(o.flags[1].name, "pids");
	CHECK_INT(o.flags[1].number, 9);
	CHECK_INT(o.flags[1].limit, 128);
	CHECK_STR(o.flags[2].name, "disk");
	CHECK_INT(o.flags[2].limit, 2ll << 30);
	CHECK_STR(o.flags[3].name, "syscall_denied");
	CHECK_INT(o.flags[3].number, 4);
	CHECK_STR(cause_name(o.cause), "exited");
}

TEST(outcome_refused_calls_are_counted_and_not_blamed)
{
	struct ending e = ending();

	e.value = 1;
	e.denied[0] = (struct denied_call){ 165, 1 };
	e.n_denied = 1;
	struct outcome o = decide(&e);
	CHECK_STR(o.flags[0].sentence, "System calls: 1 call was refused (mount); this need not be "
				       "why the program failed.");
	CHECK(!o.flags[0].is_minor);
	e.denied[0].times = 2;
	CHECK(strstr(decide(&e).flags[0].sentence, "2 calls were refused (mount)") != NULL);
}

TEST(outcome_refused_advice_on_memory_is_minor)
{
	struct ending e = ending();

	e.denied[0] = (struct denied_call){ 237, 2 };
	e.n_denied = 1;
	CHECK_STR(decide(&e).flags[0].sentence, "System calls: 2 calls were refused (mbind).");
	CHECK(decide(&e).flags[0].is_minor);
	e.denied[1] = (struct denied_call){ 165, 1 };
	e.n_denied = 2;
	CHECK(!decide(&e).flags[0].is_minor);
}

TEST(outcome_every_cause_has_its_name)
{
	static const char *const names[CAUSES_] = {
		"exited",      "signaled",     "timeout",   "cpu_time",
		"oom",         "interrupted",  "cancelled", "session_closed",
		"kernel_died", "setup_failed", "evicted",   "service_restarted",
	};

	for (int i = 0; i < CAUSES_; i++)
		CHECK_STR(cause_name((enum cause)i), names[i]);
}
