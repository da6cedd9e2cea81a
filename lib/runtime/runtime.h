/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime.h - which interpreter runs a program, where it is on the host and how it is started.
 *
 * What a language is stands in manifests (runtimes/NAME.manifest).  What is there on this host is
 * found by looking and by asking each candidate once, in a child with a deadline; the answers
 * are kept in STATE/runtimes.cache and believed as long as stat(2) shows the same file.  A broken
 * or missing cache, or a state directory that cannot be written, costs time and nothing else.
 *
 * In the sandbox an interpreter of /usr stays where it is; any other prefix appears read-only as
 * /opt/cay/NAME@VERSION.  A prefix that holds more than a runtime (a home directory, a pip.conf)
 * is never shown. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct err;

#define RUNTIME_NAME_SIZE 32    /* python@3.12 */
#define RUNTIME_VERSION_SIZE 32 /* 3.12.1 */
#define RUNTIME_PATH_SIZE 512   /* of an interpreter; one with a longer path is not found */
#define RUNTIME_ARGS_MAX 24
#define RUNTIME_ENV_MAX 16
#define RUNTIME_TEXT_SIZE 8192
#define RUNTIME_WHY_SIZE 384
#define RUNTIME_ROOT "/opt/cay" /* where prefixes appear in the sandbox */

/* One candidate that was found, good or not. */
struct runtime {
	char lang[RUNTIME_NAME_SIZE];       /* python */
	char name[RUNTIME_NAME_SIZE];       /* python@3.12, bash; empty: it could not be asked */
	char version[RUNTIME_VERSION_SIZE]; /* 3.12.1, or empty */
	char exe[RUNTIME_PATH_SIZE];        /* on the host, no symlink in it */
	char prefix[RUNTIME_PATH_SIZE];     /* on the host: /usr, /usr/local or a directory */
	char site[128];                     /* python: where libraries go, below plan.target */
	bool shared;                        /* it needs a shared object in prefix/lib */
	bool usable;
	bool is_default;               /* what its language's plain name means here */
	char why[RUNTIME_WHY_SIZE];    /* not usable: one sentence */
	char layer[RUNTIME_NAME_SIZE]; /* the set of libraries laid over it (data), or empty */
};

/* What the caller knows about the program. */
struct runtime_want {
	const char *lang; /* --lang NAME[@VERSION], or NULL */
	const char *file; /* its file name, or NULL for code without one (-c) */
	const char *head; /* its first bytes: shebang, or the code itself; may be NULL */
	size_t head_len;
	unsigned cpus; /* whole cores, at least 1: told to libraries that start threads */
	bool image;    /* --image: interpreters of that image, by their plain names; no prefix */
	bool no_layer; /* leave the libraries out */
};

/* All that is needed to run it.  The pointers lead into `text`: do not copy the struct.
 *
 * With a prefix: a BIND_TREE of prefix at target, `over` it the layer.  Without one the
 * interpreter is in /usr already; a layer then goes over /usr. */
struct runtime_plan {
	char name[RUNTIME_NAME_SIZE];       /* python@3.12: for receipts and people */
	char version[RUNTIME_VERSION_SIZE]; /* 3.12.1; empty with image */
	char exe[RUNTIME_PATH_SIZE];        /* on the host; empty with image */
	char prefix[RUNTIME_PATH_SIZE];     /* on the host, or empty */
	char target[64];                    /* /opt/cay/python@3.12, or /usr; empty with image */
	char layer[PATH_MAX];               /* on the host, or empty */
	char layer_digest[65];              /* its name, hex, or empty */
	char bin[RUNTIME_PATH_SIZE];        /* goes first in PATH inside; empty: PATH as it is */
	char note[RUNTIME_WHY_SIZE];        /* a sentence for the person, or empty */
	char file_name[RUNTIME_NAME_SIZE];  /* for code without a name: code.py */
	/* Commands, "{file}" for the program; compile[0] is NULL where nothing is compiled.  The
	 * program's own arguments go after run. */
	const char *compile[RUNTIME_ARGS_MAX + 1];
	const char *run[RUNTIME_ARGS_MAX + 1];
	const char *env[RUNTIME_ENV_MAX + 1]; /* NAME=value; what the user asks for wins */
	char text[RUNTIME_TEXT_SIZE];
};

struct runtimes;

/* Reads the manifests of a directory (NULL: beside or near this executable, see
 * runtimes_find_dir).  state_dir is borrowed and may be missing. */
int runtimes_open(const char *state_dir, const char *manifest_dir, struct runtimes **ret_runtimes,
		  struct err *err);
void runtimes_close(struct runtimes *runtimes);

/* The directory of the manifests and locks: EXE/runtimes in a build, EXE/../share/cay/runtimes
 * when installed. */
int runtimes_find_dir(char ret_dir[static PATH_MAX], struct err *err);
const char *runtimes_dir(const struct runtimes *runtimes);

/* By --lang, else by shebang, else by extension; ERR_INVALID when none of them says it,
 * ERR_NOT_FOUND with what is there when this host lacks it. */
int runtimes_plan(struct runtimes *runtimes, const struct runtime_want *want,
		  struct runtime_plan *ret_plan, struct err *err);

/* Puts file in the place of "{file}".  ret_argv gets at most RUNTIME_ARGS_MAX pointers and a
 * NULL; returns their number. */
size_t runtime_argv(const char *const *words, const char *file,
		    const char *ret_argv[static RUNTIME_ARGS_MAX + 1]);

/* Looks again (what did not change is not asked again).  The list is the set's own, in the order
 * of preference within a language, until the next call. */
int runtimes_scan(struct runtimes *runtimes, const struct runtime **ret_list, size_t *ret_count,
		  struct err *err);

/* The languages that manifests describe: *ret_title is for people ("Python").  NULL past the
 * last one. */
const char *runtimes_lang(const struct runtimes *runtimes, size_t index, const char **ret_title);

/* Why a language has no usable runtime here and how to get one; one sentence. */
void runtimes_explain(const struct runtimes *runtimes, const char *lang,
		      char ret_text[static RUNTIME_WHY_SIZE]);

/* The usable runtime that NAME[@VERSION] means here, as runtimes_plan would pick it. */
int runtimes_find(struct runtimes *runtimes, const char *lang, struct runtime *ret_runtime,
		  struct err *err);
