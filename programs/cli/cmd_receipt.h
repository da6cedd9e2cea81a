/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_receipt.h - what the parts of `cay receipt` share.
 *
 * A file of receipts may come from anybody: nothing of it is printed that could move a cursor. */
#pragma once

#include "options.h"
#include "receipt/verify.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

#define EXIT_CANNOT_TELL 3

struct receipt_options {
	bool json;
	bool part;
	uint64_t n;
	struct text_list keys;
};

int receipt_ls(const struct receipt_options *mine, const struct operands *operands);
int receipt_show(const struct receipt_options *mine, const struct operands *operands);

/* The chain of this user, for reading; -ENOENT when there is none yet. */
int receipt_open_chain(struct err *err);

/* The keys that were named, or our own.  No own key is no error: then nobody can tell. */
int receipt_load_keys(const struct text_list *named, struct receipt_keys *ret_keys,
		      struct err *err);

/* Pretty and in ASCII. */
void receipt_print_json(const json_t *value);

/* Says why something cannot be read and gives the exit code for it. */
int receipt_fail(const struct err *err, bool json);
