/* SPDX-License-Identifier: Apache-2.0
 *
 * shebang.h - the first line of a script: #!/usr/bin/env python3.11 -u */
#pragma once

#include "runtime/runtime.h"

#define SHEBANG_LINE_MAX 255 /* what the kernel reads */

struct shebang {
	char name[64];                      /* python */
	char version[24];                   /* 3.11, or empty */
	char options[SHEBANG_LINE_MAX + 1]; /* words after the interpreter */
};

/* False when there is no such line, or no interpreter in it. */
bool shebang_parse(const char *head, size_t len, struct shebang *ret_shebang);
