/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quantity.h"

#include "base/err.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* No limit of ours is near this; what is above it is a slip of the finger. */
#define HUGE_VALUE (1ull << 53)

struct unit {
	const char *name;
	uint64_t factor;
};

struct form {
	const char *kind;  /* "a size" */
	const char *right; /* "512M or 1.5G" */
	const struct unit *units;
	bool whole; /* no fraction */
	const char *least, *most;
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", 1ull << 10 },
	{ "kb", 1ull << 10 },
	{ "kib", 1ull << 10 },
	{ "m", 1ull << 20 },
	{ "mb", 1ull << 20 },
	{ "mib", 1ull << 20 },
	{ "g", 1ull << 30 },
	{ "gb", 1ull << 30 },
	{ "gib", 1ull << 30 },
	{ "t", 1ull << 40 },
	{ "tb", 1ull << 40 },
	{ "tib", 1ull << 40 },
	{ 0 },
};
static const struct unit duration_units[] = {
	{ "", 1000 },     { "ms", 1 },      { "s", 1000 },     { "sec", 1000 }, { "m", 60000 },
	{ "min", 60000 }, { "h", 3600000 }, { "d", 86400000 }, { 0 },
};
static const struct unit number_units[] = { { "", 1 }, { 0 } };
static const struct unit millis_units[] = { { "", 1000 }, { 0 } };

static const struct form size_form = { "a size", "512M or 1.5G", size_units,
				       false,    "1 byte",       "8192T" };
static const struct form duration_form = { "a duration",   "30s, 1.5s, 5m or 2h",
					   duration_units, false,
					   "1ms",          "104249991d" };
static const struct form number_form = { "a whole number",  "64", number_units, true, "1",
					 "9007199254740992" };
static const struct form millis_form = { "a number", "2 or 0.5", millis_units,
					 false,      "0.001",    "9007199254740" };

static int refuse(struct err *err, const char *what, const char *text, const char *why,
		  const struct form *form)
{
	return err_make(err, ERR_INVALID, "%s '%.64s' %s; give %s above zero, such as %s", what,
			text, why, form->kind, form->right);
}

static int refuse_range(struct err *err, const char *what, const char *text, bool large,
			const struct form *form)
{
	err_make(err, ERR_INVALID, "%s '%.64s' is too %s; give %s %s", what, text,
		 large ? "large" : "small", large ? "at most" : "at least",
		 large ? form->most : form->least);
	err->errnum = large ? ERANGE : EDOM;
	return -err->errnum;
}

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (strcasecmp(units->name, name) == 0)
			return units;
	return NULL;
}

/* Digits as value * 10^decimals; stops at the first other byte.  False when there is no digit. */
static bool read_decimal(const char **at, bool whole, uint64_t *ret_value, unsigned *ret_decimals,
			 bool *ret_huge)
{
	uint64_t value = 0;
	unsigned decimals = 0, digits = 0;
	bool dot = false;
	const char *c = *at;

	*ret_huge = false;
	for (; (*c >= '0' && *c <= '9') || (*c == '.' && !dot && !whole); c++) {
		if (*c == '.') {
			dot = true;
			continue;
		}
		digits++;
		/* Beyond nine decimals nothing changes. */
		if (dot && decimals == 9)
			continue;
		if (value > HUGE_VALUE) {
			*ret_huge = true;
			continue;
		}
		value = value * 10 + (uint64_t)(*c - '0');
		decimals += dot;
	}
	*at = c;
	*ret_value = value;
	*ret_decimals = decimals;
	return digits > 0 && c[-1] != '.';
}

static int parse(const char *text, const char *what, const struct form *form, uint64_t *ret,
		 struct err *err)
{
	const char *at = text;
	uint64_t value;
	unsigned decimals;
	bool huge;

	if (*text == '-' && text[1] >= '0' && text[1] <= '9')
		return refuse(err, what, text, "is negative", form);
	if (!read_decimal(&at, form->whole, &value, &decimals, &huge))
		return refuse(err, what, text, "is not a number", form);
	const struct unit *unit = find_unit(form->units, at);
	if (!unit)
		return refuse(err, what, text,
			      form->whole ? "is not a whole number"
					  : "has a unit that does not exist",
			      form);
	__extension__ unsigned __int128 scaled = (unsigned __int128)value * unit->factor;
	for (; decimals > 0; decimals--)
		scaled /= 10;
	if (huge || scaled > HUGE_VALUE)
		return refuse_range(err, what, text, true, form);
	if (value == 0)
		return refuse(err, what, text, "is zero", form);
	if (scaled == 0)
		return refuse_range(err, what, text, false, form);
	*ret = (uint64_t)scaled;
	return 0;
}

int quantity_size(const char *text, const char *what, uint64_t *ret_bytes, struct err *err)
{
	return parse(text, what, &size_form, ret_bytes, err);
}

int quantity_duration(const char *text, const char *what, uint64_t *ret_ms, struct err *err)
{
	return parse(text, what, &duration_form, ret_ms, err);
}

int quantity_number(const char *text, const char *what, uint64_t *ret_number, struct err *err)
{
	return parse(text, what, &number_form, ret_number, err);
}

int quantity_millis(const char *text, const char *what, uint64_t *ret_millis, struct err *err)
{
	return parse(text, what, &millis_form, ret_millis, err);
}

/* value / factor with one decimal where there is one. */
static const char *show(char *ret_text, uint64_t value, uint64_t factor, const char *unit)
{
	uint64_t tenths = value / factor * 10 + value % factor * 10 / factor;

	if (tenths % 10)
		snprintf(ret_text, QUANTITY_TEXT, "%llu.%llu %s", (unsigned long long)(tenths / 10),
			 (unsigned long long)(tenths % 10), unit);
	else
		snprintf(ret_text, QUANTITY_TEXT, "%llu %s", (unsigned long long)(tenths / 10),
			 unit);
	return ret_text;
}

const char *quantity_show_size(char ret_text[static QUANTITY_TEXT], uint64_t bytes)
{
	if (bytes < 1024)
		return show(ret_text, bytes, 1, "bytes");
	if (bytes < 1ull << 20)
		return show(ret_text, bytes, 1ull << 10, "KiB");
	/* Limits are told in MiB up to a point where nobody can read the number any more. */
	if (bytes < 10ull << 30)
		return show(ret_text, bytes, 1ull << 20, "MiB");
	return show(ret_text, bytes, 1ull << 30, "GiB");
}

const char *quantity_show_duration(char ret_text[static QUANTITY_TEXT], uint64_t ms)
{
	if (ms < 1000)
		return show(ret_text, ms, 1, "ms");
	if (ms < 600000)
		return show(ret_text, ms, 1000, "s");
	if (ms < 36000000)
		return show(ret_text, ms, 60000, "min");
	return show(ret_text, ms, 3600000, "h");
}
