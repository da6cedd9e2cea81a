/* SPDX-License-Identifier: Apache-2.0
 *
 * quantity.h - sizes, durations and counts as people write them.
 *
 * Exact: decimal digits, no floating point, no locale.  Zero, negative, huge, not a number, and
 * anything after the unit are refused with a sentence that names the value and the right form.
 * A number that is too large is -ERANGE, one that rounds to nothing -EDOM, the rest -EINVAL.
 * `what` is how that sentence calls the thing: "--memory". */
#pragma once

#include <stdint.h>

struct err;

/* 512M, 1.5G, 100k, 4096, 1GiB: powers of 1024.  Bytes, rounded down. */
int quantity_size(const char *text, const char *what, uint64_t *ret_bytes, struct err *err);

/* 500ms, 30s, 1.5s, 5m, 2h, 1d; without a unit: seconds.  Milliseconds, at least one. */
int quantity_duration(const char *text, const char *what, uint64_t *ret_ms, struct err *err);

/* A whole number from 1. */
int quantity_number(const char *text, const char *what, uint64_t *ret_number, struct err *err);

/* A number with a fraction, in thousandths: 0.5 is 500. */
int quantity_millis(const char *text, const char *what, uint64_t *ret_millis, struct err *err);

/* 1536 -> "1.5 KiB", 1073741824 -> "1024 MiB": exact up to one decimal, for sentences. */
#define QUANTITY_TEXT 32
const char *quantity_show_size(char ret_text[static QUANTITY_TEXT], uint64_t bytes);
/* 1500 -> "1.5 s", 90000 -> "90 s", 250 -> "250 ms". */
const char *quantity_show_duration(char ret_text[static QUANTITY_TEXT], uint64_t ms);
