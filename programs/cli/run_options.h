/* SPDX-License-Identifier: Apache-2.0
 *
 * run_options.h - the flags of `cay run`, as they were given. */
#pragma once

#include "options.h"

#include <stdbool.h>
#include <stdint.h>

struct run_options {
	const char *code, *lang, *image, *isolation, *profile, *workspace, *cwd;
	struct text_list inputs, outs, env, env_files, require;
	uint64_t memory, disk, output; /* bytes; 0: the profile's */
	uint64_t timeout, cpu_time;    /* milliseconds */
	uint64_t pids, open_files;
	uint64_t cpus; /* thousandths */
	bool json, force, quiet, verbose, interactive, no_layer;
};

extern const struct option_set run_option_set;

void run_options_finish(struct run_options *options);
