/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.h - asks an interpreter what it is.
 *
 * The candidate is started once, in "/", with a small environment, no input, its output bounded
 * and PROBE_TIMEOUT_MS of time; then its whole process group is killed.  What it says is checked
 * like any other foreign text.  Who may be started is the caller's question. */
#pragma once

#include "runtime/runtime.h"

struct err;

#define PROBE_TIMEOUT_MS 5000
#define PROBE_OUTPUT_MAX 16384

/* What it said about itself; empty where its kind does not tell. */
struct probe {
	char version[RUNTIME_VERSION_SIZE];
	char implementation[32];     /* cpython */
	char exe[RUNTIME_PATH_SIZE]; /* the interpreter behind a shim or a virtual environment */
	char prefix[RUNTIME_PATH_SIZE];
	char site[RUNTIME_PATH_SIZE];
	char outside[RUNTIME_PATH_SIZE]; /* a file that it uses and that is neither in prefix nor in
					    /usr */
	bool shared;
};

/* kind: python, node, or version (a program that answers to --version). */
int probe_ask(const char *kind, const char *exe, struct probe *ret_probe, struct err *err);

/* Reads an answer.  Public for the tests and the fuzzer. */
int probe_parse(const char *text, size_t len, struct probe *ret_probe, struct err *err);
