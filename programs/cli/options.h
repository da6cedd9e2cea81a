/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - arguments of a command, read by a table.
 *
 *     struct my_options { bool json; const char *name; uint64_t memory; struct text_list env; };
 *
 *     static const struct option options[] = {
 *             { .name = "json", .kind = OPTION_FLAG, .at = offsetof(struct my_options, json),
 *               .help = "print one JSON document" },
 *             { .name = "env", .letter = 'e', .kind = OPTION_LIST, .value = "KEY=VALUE",
 *               .at = offsetof(struct my_options, env), .help = "set a variable (repeatable)" },
 *             { 0 },
 *     };
 *     static const struct option_set set = {
 *             .usage = "cay thing [flags] NAME", .about = "Does the thing.", .options = options,
 *     };
 *
 *     struct my_options mine = { 0 };
 *     struct operands operands;
 *     int r = options_parse(&set, argc, argv, &mine, &operands, &err);
 *     if (r < 0)
 *             return say_failure(&err, NULL, mine.json, EXIT_USAGE);
 *     if (r == OPTIONS_HELPED)
 *             return EXIT_DONE;
 *
 * `--name value`, `--name=value`, `-e value`, `-evalue` and `-qv` are understood; flags may stand
 * before and after operands; everything after `--` is an operand.  --help is always there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define OPTIONS_HELPED 1

enum option_kind {
	OPTION_FLAG,     /* bool */
	OPTION_TEXT,     /* const char *, points into argv; NULL when not given */
	OPTION_LIST,     /* struct text_list; may be given many times */
	OPTION_SIZE,     /* uint64_t bytes: 512M; 0 when not given, zero is refused */
	OPTION_DURATION, /* uint64_t milliseconds: 1.5s; likewise */
	OPTION_NUMBER,   /* uint64_t: a whole number from 1; likewise */
	OPTION_MILLIS,   /* uint64_t thousandths: 0.5 is 500; likewise */
};

struct option {
	const char *name;
	char letter; /* or 0 */
	enum option_kind kind;
	size_t at;         /* offset of the field in the command's own struct */
	const char *value; /* what the help calls the value: SIZE, FILE */
	const char *help;
};

struct option_set {
	const char *usage;            /* "cay run [flags] FILE"; more forms on more lines */
	const char *about;            /* one or two sentences */
	const struct option *options; /* ended by { 0 }; may be NULL */
	const char *notes;            /* after the list, or NULL */
	bool has_limits;              /* a number whose flag is named as a limit is in its range */
	const char *instead;          /* a flag in the place of the first operand, or NULL */
};

/* In the order they were given; the strings are argv's.  Free with text_list_finish(). */
struct text_list {
	const char **items; /* owned */
	size_t n;
};
void text_list_finish(struct text_list *list);

struct operands {
	char **items; /* argv's own array, reordered */
	size_t n;
	size_t n_before_dashes; /* operands that came before `--` */
	bool has_dashes;
};

/* 0, OPTIONS_HELPED after printing the help to stdout, or an ERR_INVALID that names the flag or
 * the value.  A --json among the arguments is noticed even when an earlier one is wrong. */
int options_parse(const struct option_set *set, int argc, char **argv, void *target,
		  struct operands *ret_operands, struct err *err);

/* Of the n names the one that was probably meant, or NULL. */
const char *options_nearest(const char *word, const char *const *names, size_t n);
