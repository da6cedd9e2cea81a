/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest.h - what a language is: how its interpreter is found, asked and started.
 *
 * One `key = value` file per language; the table in manifest.c says what each key means. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define MANIFESTS_MAX 32

struct manifest {
	char name[24];
	char title[32];
	char runtime[24];     /* the language whose interpreter runs it; its own name if empty */
	char aliases[128];    /* words, here and below: between spaces */
	char extensions[128]; /* with their dots */
	char shebangs[128];   /* names of interpreters, without a version */
	char probe[16];       /* how an interpreter is asked: see probe.h */
	char commands[256];   /* names of its executables, the best first */
	char search[2048];    /* lines: directories in which they are looked for; see search.h */
	char oldest[16], newest[16], preferred[16];
	uint64_t version_parts; /* 2: python@3.12; 0: no version in the name */
	char compile[512];      /* words; may be empty */
	char run[512];
	char env[1024]; /* lines */
	char code_file[24];
	char module_file[24]; /* JavaScript: for code that is a module */
	bool code_default;    /* the language of code that does not say it */
	char get[160];        /* how to get one, as half a sentence */
};

struct manifests {
	struct manifest *items; /* owned; by name */
	size_t count;
	uint64_t fingerprint; /* changes when one of the files does */
};

/* Reads every NAME.manifest of a directory. */
int manifests_read(const char *dir, struct manifests *ret_manifests, struct err *err);
void manifests_finish(struct manifests *manifests);

/* By name or alias; NULL when no manifest has it. */
const struct manifest *manifests_find(const struct manifests *manifests, const char *name);
const struct manifest *manifests_find_extension(const struct manifests *manifests,
						const char *file);
const struct manifest *manifests_find_shebang(const struct manifests *manifests, const char *name);
const struct manifest *manifests_code_default(const struct manifests *manifests);

/* The manifest of the interpreter that runs it: often itself, never NULL. */
const struct manifest *manifests_interpreter(const struct manifests *manifests,
					     const struct manifest *manifest);

/* Is `word` one of the words, ignoring case? */
bool words_have(const char *words, const char *word);

/* The next word of *at, copied and cut to size; false at the end.  Separators: space, newline. */
bool words_next(const char **at, char *ret_word, size_t size);

/* The next line of *at, likewise. */
bool lines_next(const char **at, char *ret_line, size_t size);
