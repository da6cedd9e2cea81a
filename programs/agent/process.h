/* SPDX-License-Identifier: Apache-2.0
 *
 * process.h - the life of a channel that is a process, from the report of its exec to its exit.
 *
 * Output is read only while the client's credit lasts; what stays in the pipe holds the program
 * back.  The exit is told when both pipes have ended, or DRAIN_MS after the process has, when
 * somebody in the background keeps them open: what is in them at that moment is still sent. */
#pragma once

#include "sandbox.h"

/* Does what can be done without waiting. */
void process_pump(struct sandbox *sandbox, struct channel *channel);

/* Stdin from the client; more than its window is refused. */
int process_feed(struct channel *channel, const uint8_t *data, size_t len, struct err *err);
void process_feed_eof(struct channel *channel);

/* wait4() has seen its end. */
struct rusage;
void process_ended(struct sandbox *sandbox, struct channel *channel, int status,
		   const struct rusage *usage);

/* 0 also when the process is gone already. */
int process_signal(const struct channel *channel, int number, enum agent_scope scope);

/* When process_pump() is due by time alone; INT64_MAX: never. */
int64_t process_deadline(const struct channel *channel);
