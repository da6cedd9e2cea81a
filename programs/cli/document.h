/* SPDX-License-Identifier: Apache-2.0
 *
 * document.h - what `cay run --json` prints: one document on stdout, whatever happened. */
#pragma once

struct err;
struct run;

/* failure: why cay itself failed, or NULL.  Returns 0, or -1 when it could not be written. */
int document_print(struct run *run, const struct err *failure);
