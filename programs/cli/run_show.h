/* SPDX-License-Identifier: Apache-2.0
 *
 * run_show.h - what a person sees after the program ended. */
#pragma once

struct run;

/* The kept ends of streams that were longer than their cap, and how much was dropped. */
void run_show_rest(struct run *run);

/* The sentences of the outcome, when it was more than a plain exit. */
void run_show_outcome(const struct run *run);

/* -v */
void run_show_times(const struct run *run);
