/* SPDX-License-Identifier: Apache-2.0
 *
 * guest.h - hostile guests: programs that try to get out, and say how it went.
 *
 *     guest D003 [argument...]
 *
 * prints one line {"probe": "D003", "ok": true, "detail": ""} and ends with 0 when every attempt
 * was refused as it should be, with 1 otherwise.  Outside of a sandbox a guest refuses to start
 * (3), unless its probe can harm nobody. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HARMLESS true

struct probe {
	const char *id;
	void (*run)(int argc, char **argv);
	bool harmless; /* may be tried on a host too */
};

/* Each ends with one without an id. */
extern const struct probe file_probes[], process_probes[], signal_probes[], kernel_probes[],
	socket_probes[], resource_probes[], core_probes[];

/* Notes what went wrong; the guest goes on with its next attempt. */
void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The call must have failed, with one of these errnos. */
void refused(const char *what, long answer, const int *errnums);
#define REFUSED(call, ...) refused(#call, (long)(call), (const int[]){ __VA_ARGS__, 0 })

/* The call must have failed, for whatever reason: some layer held. */
void failed(const char *what, long answer);
#define FAILED(call) failed(#call, (long)(call))

/* The call must have worked. */
void worked(const char *what, long answer);
#define WORKED(call) worked(#call, (long)(call))

/* The whole file and a NUL; "" when it cannot be read.  Static memory, until the next call. */
const char *read_whole(const char *path);

/* What one child that runs `run` ended with: a wait status. */
int in_child(void (*run)(void));

/* The table of outcomes of all system calls, on stdout. */
void print_syscalls(void);
