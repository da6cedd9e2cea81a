/* SPDX-License-Identifier: Apache-2.0
 *
 * results.h - files that a run left behind: listed, fetched and put into the person's folder.
 *
 * Everything in /workspace/output (of a scratch workspace), and what --out names.  Regular files
 * only; a file that exists is replaced only with --force; names that begin with a dot come back
 * only when --out spells the dot, because `.git/hooks/x` or `.envrc` would be run by the tools of
 * whoever works in that folder.  Names that begin with '-' or have control characters come back
 * only when --out spells them.  Names and sizes are the agent's word: bounded and checked. */
#pragma once

#include "receipt/digest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct run;

struct result_file {
	char *inside;    /* owned; below /workspace */
	char *name;      /* owned; below dir */
	const char *dir; /* the job's; "." is the current folder */
	uint32_t mode;
	uint64_t bytes, real_bytes;   /* real: without holes */
	char sha256[DIGEST_HEX_SIZE]; /* empty: it did not come back */
};

/* What should have come back and did not. */
struct result_failure {
	char *name;   /* owned; raw */
	char *reason; /* owned */
};

struct results {
	struct result_file *files; /* owned */
	size_t n;
	struct result_failure *failures; /* owned */
	size_t n_failures;
	uint64_t total_bytes;    /* that take room here; never more than the disk limit */
	int64_t deadline_ms;     /* for all of them together */
	size_t n_complaints;     /* about single files */
	size_t n_over;           /* beyond the number that comes back */
	char closed_folder[128]; /* the first that seems unreadable; empty: none */
	size_t n_skipped;        /* links, sockets, hidden names */
	uint32_t matched;        /* bits: which --out named a file */
	bool failed;             /* something that should be there is not; it was said */
};

/* Fetches all.  Every process of the sandbox is ended first, so that nothing changes meanwhile. */
void results_collect(struct run *run);
void results_finish(struct results *results);
