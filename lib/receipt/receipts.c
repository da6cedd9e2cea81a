/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/receipt.h"

#include "base/auto.h"
#include "base/err.h"
#include "receipt/chain.h"
#include "receipt/envelope.h"
#include "receipt/key.h"
#include "receipt/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

struct receipts {
	int dir;         /* owned; `receipts` */
	struct key *key; /* owned */
};

static int open_dir(const char *state_dir, struct err *err)
{
	auto_close int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state < 0)
		return err_errno(err, errno, "open '%s'", state_dir);
	int dir = openat(state, "receipts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 && errno == ENOENT) {
		if (mkdirat(state, "receipts", 0700) < 0 && errno != EEXIST)
			return err_errno(err, errno, "make '%s/receipts'", state_dir);
		if (fsync(state) < 0)
			return err_errno(err, errno, "sync '%s'", state_dir);
		dir = openat(state, "receipts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return dir < 0 ? err_errno(err, errno, "open '%s/receipts'", state_dir) : dir;
}

/* jansson would open /dev/urandom when the first object is made. */
static void start_json(void)
{
	size_t seed = 0;

	(void)!getrandom(&seed, sizeof(seed), 0); /* with 0 it does so itself */
	json_object_seed(seed);
}

int receipts_open(const char *state_dir, struct receipts **ret_receipts, struct err *err)
{
	struct receipts *receipts = calloc(1, sizeof(*receipts));

	if (!receipts)
		return err_errno(err, ENOMEM, "open the receipts");
	start_json();
	int r = receipts->dir = open_dir(state_dir, err);
	if (r >= 0)
		r = key_open(state_dir, &receipts->key, err);
	if (r < 0) {
		receipts_close(receipts);
		return err_while(err, "open the receipts");
	}
	*ret_receipts = receipts;
	return 0;
}

void receipts_close(struct receipts *receipts)
{
	if (!receipts)
		return;
	key_close(receipts->key);
	drop_fd(&receipts->dir);
	free(receipts);
}

/* Everything but the disk: who comes next, signed. */
static int write_line(struct receipts *receipts, const struct chain *chain, const json_t *predicate,
		      const struct receipt_subject *subjects, size_t n_subjects,
		      struct receipt *ret_receipt, char *ret_line, struct err *err)
{
	char payload[RECEIPT_STATEMENT_MAX];
	struct payload_place place = { .seq = chain->last_seq + 1 };

	memcpy(place.prev, chain->last_sha256, DIGEST_HEX_SIZE);
	int r = id_make(place.id, ID_RECEIPT, err);
	if (r < 0)
		return r;
	int len = payload_build(&place, predicate, subjects, n_subjects, payload, sizeof(payload),
				err);
	if (len < 0)
		return len;
	memcpy(ret_receipt->id, place.id, ID_SIZE);
	ret_receipt->seq = place.seq;
	digest_of(payload, (size_t)len, ret_receipt->sha256);
	memcpy(ret_receipt->key_id, key_id(receipts->key), DIGEST_HEX_SIZE);
	return envelope_write(receipts->key, payload, (size_t)len, ret_line, err);
}

int receipt_append(struct receipts *receipts, const json_t *predicate,
		   const struct receipt_subject *subjects, size_t n_subjects,
		   struct receipt *ret_receipt, struct err *err)
{
	struct receipt receipt = { 0 };
	struct chain chain;

	auto_free char *line = malloc(RECEIPT_LINE_MAX + 1);
	if (!line)
		return err_errno(err, ENOMEM, "write a receipt");
	int r = chain_lock(receipts->dir, &chain, err);
	if (r < 0)
		return err_while(err, "append a receipt");
	r = write_line(receipts, &chain, predicate, subjects, n_subjects, &receipt, line, err);
	if (r > 0) {
		size_t len = (size_t)r;
		r = chain_append(&chain, line, len, err);
		line[len - 1] = '\0';
	}
	chain_unlock(&chain);
	if (r < 0)
		return err_while(err, "append a receipt");
	receipt.envelope = take_ptr(&line);
	*ret_receipt = receipt;
	return 0;
}

void receipt_finish(struct receipt *receipt)
{
	free(receipt->envelope);
	receipt->envelope = NULL;
}
