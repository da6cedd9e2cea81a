/* SPDX-License-Identifier: Apache-2.0
 *
 * run_receipt.h - the receipt of a run: exactly one, however it ended. */
#pragma once

struct err;
struct run;

int run_write_receipt(struct run *run, struct err *err);
