/* SPDX-License-Identifier: Apache-2.0
 *
 * statement.h - what a receipt says, in bytes that cannot be mistaken.
 *
 * Names and arguments come from people and from the sandbox: they may hold any byte and be of any
 * length.  These helpers make them JSON that is printable ASCII-safe text of bounded size. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* A JSON string of the bytes.  Control characters, bytes that are not UTF-8, and characters that
 * turn or break a line of text (U+2028, U+202E, ...) become \xNN or \u{NNNN}, and a backslash is
 * doubled.  It takes at most max_bytes in the receipt, where all that is not ASCII is \uNNNN; what
 * is cut off is told by a final "…(+N bytes)".  NULL: no memory. */
json_t *statement_text(const void *bytes, size_t len, size_t max_bytes);

/* Shortens the array `key` of an object to the first entries that fit in max_bytes of JSON.  What
 * was left out stays provable: `key_omitted` is the number of entries that are gone and
 * `key_sha256` the digest of the whole array as compact JSON.  No array, or one that fits, is left
 * alone.  0 or -ENOMEM. */
int statement_cap_list(json_t *object, const char *key, size_t max_bytes);
