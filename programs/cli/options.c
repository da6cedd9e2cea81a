/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/quantity.h"
#include "wire/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX 64

/* Every command has it. */
static const struct option help_option = {
	.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "show this text"
};

struct parse {
	const struct option_set *set;
	int argc;
	char **argv;
	int at; /* the argument that is read */
	void *target;
	const char *first; /* operand, or NULL */
	bool wants_help;
};

void text_list_finish(struct text_list *list)
{
	free(list->items);
	*list = (struct text_list){ 0 };
}

static int text_list_add(struct text_list *list, const char *text, struct err *err)
{
	/* Grown by doubling: full exactly when n is a power of two. */
	if ((list->n & (list->n - 1)) == 0) {
		size_t room = list->n ? list->n * 2 : 1;
		const char **grown = reallocarray(list->items, room, sizeof(*grown));
		if (!grown)
			return err_errno(err, ENOMEM, "keep '%.64s'", text);
		list->items = grown;
	}
	list->items[list->n++] = text;
	return 0;
}

/* The distance of two words: letters left out, put in, changed or swapped. */
static unsigned distance(const char *a, const char *b)
{
	enum { LONGEST = 32 };
	size_t la = strnlen(a, LONGEST), lb = strnlen(b, LONGEST);
	unsigned rows[3][LONGEST + 1];
	unsigned *before = rows[0], *above = rows[1], *row = rows[2];

	for (unsigned j = 0; j <= lb; j++)
		before[j] = above[j] = j;
	for (unsigned i = 1; i <= la; i++) {
		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned best = above[j - 1] + (a[i - 1] != b[j - 1]);
			if (above[j] + 1 < best)
				best = above[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			row[j] = best;
		}
		unsigned *oldest = before;
		before = above;
		above = row;
		row = oldest;
	}
	return above[lb];
}

const char *options_nearest(const char *word, const char *const *names, size_t n)
{
	const char *found = NULL;
	unsigned best = strlen(word) < 5 ? 2 : 3;

	for (size_t i = 0; i < n; i++) {
		unsigned d = distance(word, names[i]);
		if (d < best) {
			best = d;
			found = names[i];
		}
	}
	return found;
}

static const struct option *find_option(const struct option_set *set, const char *name, size_t len,
					char letter)
{
	const struct option *o = set->options;

	for (; o && o->name; o++)
		if (letter ? o->letter == letter
			   : strlen(o->name) == len && memcmp(o->name, name, len) == 0)
			return o;
	o = &help_option;
	if (letter ? o->letter == letter : len == 4 && memcmp(o->name, name, len) == 0)
		return o;
	return NULL;
}

static int refuse_unknown(const struct parse *p, const char *argument, const char *name, size_t len,
			  struct err *err)
{
	const char *names[NAMES_MAX];
	size_t n = 0;
	char word[64], shown[96];

	for (const struct option *o = p->set->options; o && o->name && n < NAMES_MAX - 1; o++)
		names[n++] = o->name;
	names[n++] = help_option.name;
	snprintf(word, sizeof(word), "%.*s", (int)len, name);
	snprintf(shown, sizeof(shown), "%.*s", (int)strcspn(argument, "="), argument);

	const char *meant = len > 1 ? options_nearest(word, names, n) : NULL;
	if (meant)
		return err_make(err, ERR_INVALID, "unknown flag '%s'; did you mean '--%s'?", shown,
				meant);
	return err_make(
		err, ERR_INVALID,
		"unknown flag '%s'; `cay %s --help` lists the flags, and what is meant for the "
		"program goes after `--`",
		shown, p->argv[0]);
}

static int read_number(const struct option *o, const char *text, uint64_t *ret_number,
		       struct err *err)
{
	char what[64];

	snprintf(what, sizeof(what), "--%s", o->name);
	switch (o->kind) {
	case OPTION_SIZE:
		return quantity_size(text, what, ret_number, err);
	case OPTION_DURATION:
		return quantity_duration(text, what, ret_number, err);
	case OPTION_MILLIS:
		return quantity_millis(text, what, ret_number, err);
	default:
		return quantity_number(text, what, ret_number, err);
	}
}

/* Out of what the limit may be is told in the words that were given. */
static int read_limit(const struct parse *p, const struct option *o, const char *text,
		      uint64_t *ret_number, struct err *err)
{
	const struct limit_range *range = p->set->has_limits ? limit_range_find(o->name) : NULL;
	uint64_t number = 0;
	int r = read_number(o, text, &number, err);

	if (r == 0 && (!range || (number >= range->min && number <= range->max))) {
		*ret_number = number;
		return 0;
	}
	if (!range || (r < 0 && r != -ERANGE && r != -EDOM))
		return r;
	bool large = r == -ERANGE || number > range->max;
	return err_make(err, ERR_INVALID, "--%s '%.64s' is too %s; give %s", o->name, text,
			large ? "large" : "small", range->text);
}

static int store(struct parse *p, const struct option *o, const char *text, struct err *err)
{
	char *field = (char *)p->target + o->at;

	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)field = text;
		return 0;
	case OPTION_LIST:
		return text_list_add((struct text_list *)field, text, err);
	default:
		return read_limit(p, o, text, (uint64_t *)field, err);
	}
}

/* value: what was given together with the flag, or NULL to take the next argument. */
static int take(struct parse *p, const struct option *o, const char *value, struct err *err)
{
	if (o == &help_option) {
		p->wants_help = true;
		return 0;
	}
	if (o->kind == OPTION_FLAG && value)
		return err_make(err, ERR_INVALID, "the flag '--%s' takes no value", o->name);
	if (o->kind != OPTION_FLAG && !value) {
		if (p->at + 1 >= p->argc)
			return err_make(err, ERR_INVALID, "the flag '--%s' needs a value: --%s %s",
					o->name, o->name, o->value);
		value = p->argv[++p->at];
	}
	if (p->set->instead && strcmp(o->name, p->set->instead) == 0 && p->first)
		return err_make(
			err, ERR_INVALID,
			"'%.200s' and --%s: give one of them; arguments of the code go after it",
			p->first, o->name);
	return store(p, o, value, err);
}

static int read_long(struct parse *p, struct err *err)
{
	const char *argument = p->argv[p->at], *name = argument + 2;
	size_t len = strcspn(name, "=");
	const struct option *o = find_option(p->set, name, len, 0);

	if (!o)
		return refuse_unknown(p, argument, name, len, err);
	return take(p, o, name[len] == '=' ? name + len + 1 : NULL, err);
}

/* -q, -qv, -e value, -evalue */
static int read_short(struct parse *p, struct err *err)
{
	const char *argument = p->argv[p->at];

	for (const char *c = argument + 1; *c; c++) {
		const struct option *o = find_option(p->set, NULL, 0, *c);
		if (!o)
			return refuse_unknown(p, argument, argument + 1, strlen(argument + 1), err);
		bool last = o->kind != OPTION_FLAG;
		int r = take(p, o, last && c[1] ? c + 1 : NULL, err);
		if (r < 0 || last)
			return r;
	}
	return 0;
}

static void print_option(const struct option *o)
{
	char left[64];
	bool takes_value = o->kind != OPTION_FLAG;

	snprintf(left, sizeof(left), "%c%c%c --%s%s%s", o->letter ? '-' : ' ',
		 o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
		 takes_value ? " " : "", takes_value ? o->value : "");
	printf("  %-30s  %s\n", left, o->help);
}

static void print_help(const struct option_set *set)
{
	printf("Usage: %s\n\n%s\n\nFlags:\n", set->usage, set->about);
	for (const struct option *o = set->options; o && o->name; o++)
		print_option(o);
	print_option(&help_option);
	if (set->notes)
		printf("\n%s", set->notes);
}

/* The answer to a wrong flag shall have the form that was asked for. */
static void notice_json(const struct parse *p)
{
	const struct option *o = find_option(p->set, "json", 4, 0);

	if (!o || o->kind != OPTION_FLAG)
		return;
	for (int i = 1; i < p->argc && strcmp(p->argv[i], "--") != 0; i++)
		if (strcmp(p->argv[i], "--json") == 0)
			*(bool *)((char *)p->target + o->at) = true;
}

int options_parse(const struct option_set *set, int argc, char **argv, void *target,
		  struct operands *ret_operands, struct err *err)
{
	struct parse p = { .set = set, .argc = argc, .argv = argv, .at = 1, .target = target };
	struct operands found = { .items = argv + 1 };

	for (; p.at < argc; p.at++) {
		char *argument = argv[p.at];
		int r = 0;
		if (!found.has_dashes && strcmp(argument, "--") == 0) {
			found.has_dashes = true;
			found.n_before_dashes = found.n;
		} else if (found.has_dashes || argument[0] != '-' || argument[1] == '\0') {
			/* Never ahead of the argument that is read, so nothing is overwritten. */
			found.items[found.n++] = argument;
			p.first = found.items[0];
		} else {
			r = argument[1] == '-' ? read_long(&p, err) : read_short(&p, err);
		}
		if (r < 0) {
			notice_json(&p);
			return r;
		}
	}
	if (p.wants_help) {
		print_help(set);
		return OPTIONS_HELPED;
	}
	if (!found.has_dashes)
		found.n_before_dashes = found.n;
	*ret_operands = found;
	return 0;
}
