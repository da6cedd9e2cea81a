/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_receipt.c - a file of receipts, a statement and a public key are all foreign bytes. */
#include "base/err.h"
#include "base/sys.h"
#include "receipt/envelope.h"
#include "receipt/payload.h"
#include "receipt/pem.h"
#include "receipt/statement.h"
#include "receipt/verify.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With no key nothing is stopped at the signature, so the statements are reached too. */
static void verify(const uint8_t *data, size_t size, const struct receipt_keys *keys, bool part)
{
	static int fd = -1;
	struct receipt_check check;
	struct err err;

	if (fd < 0)
		fd = sys_memfd_create("chain", 0);
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size ||
	    lseek(fd, 0, SEEK_SET) != 0)
		abort();
	if (receipt_verify(fd, keys, part, &check, &err) < 0)
		abort();
	/* Nothing that was not signed by the key can be valid under it. */
	if (check.verdict == RECEIPT_VALID && keys->n > 0 && check.good > 0 && keys->raw[0][0] == 9)
		abort();
	if (strlen(check.reason) >= sizeof(check.reason))
		abort();
}

static void parse(const uint8_t *data, size_t size)
{
	static struct envelope envelope;
	struct payload_place parsed, peeked;
	struct err err;

	(void)envelope_parse((const char *)data, size, &envelope, &err);
	if (payload_parse(data, size, &parsed, NULL, &err) == 0 &&
	    payload_peek(data, size, &peeked) &&
	    (parsed.seq != peeked.seq || strcmp(parsed.id, peeked.id) != 0 ||
	     strcmp(parsed.prev, peeked.prev) != 0))
		abort();
}

static void read_keys(const uint8_t *data, size_t size)
{
	uint8_t raw[PEM_KEY_SIZE];
	char *text = strndup((const char *)data, size);
	const char *at = text;

	while (pem_next(&at, raw) == 1)
		;
	free(text);
}

static void write_text(const uint8_t *data, size_t size)
{
	json_t *text = statement_text(data, size, size / 2 + 8);

	/* Whatever the bytes were, it is a JSON string without control characters. */
	if (!text)
		abort();
	for (const char *c = json_string_value(text); *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			abort();
	json_decref(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct receipt_keys none, strange = { .n = 1, .raw = { { 9 } } };

	verify(data, size, &none, false);
	verify(data, size, &none, true);
	verify(data, size, &strange, false);
	parse(data, size);
	read_keys(data, size);
	write_text(data, size);
	return 0;
}
