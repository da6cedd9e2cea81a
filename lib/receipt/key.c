/* SPDX-License-Identifier: Apache-2.0 */
#include "receipt/key.h"

#include "base/auto.h"
#include "base/err.h"
#include "receipt/key_file.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>

struct key {
	EVP_PKEY *pkey;      /* owned */
	EVP_MD_CTX *context; /* owned */
	char id[DIGEST_HEX_SIZE];
};

int key_start_crypto(struct err *err)
{
	uint64_t what = OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT |
			OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS | OPENSSL_INIT_NO_ADD_ALL_CIPHERS |
			OPENSSL_INIT_NO_ADD_ALL_DIGESTS;

	if (OPENSSL_init_crypto(what, NULL) != 1)
		return err_make(err, ERR_UNSUPPORTED, "libcrypto does not start");
	return 0;
}

static int wrap(EVP_PKEY *pkey, struct key **ret_key, struct err *err)
{
	uint8_t raw[KEY_SIZE];
	size_t size = sizeof(raw);
	struct key *key = calloc(1, sizeof(*key));

	if (!key) {
		EVP_PKEY_free(pkey);
		return err_errno(err, ENOMEM, "open a key");
	}
	*key = (struct key){ .pkey = pkey, .context = EVP_MD_CTX_new() };
	if (!pkey || !key->context || EVP_PKEY_get_raw_public_key(pkey, raw, &size) != 1) {
		key_close(key);
		return err_make(err, ERR_UNSUPPORTED, "libcrypto does not take an Ed25519 key");
	}
	digest_of(raw, size, key->id);
	*ret_key = key;
	return 0;
}

/* Signs once, so that what libcrypto does only the first time is done, and writes the public key
 * where it is missing. */
static int prepare(struct key *key, const char *state_dir, struct err *err)
{
	uint8_t signature[KEY_SIGNATURE_SIZE], raw[KEY_SIZE];
	size_t size = sizeof(raw);

	if (EVP_PKEY_get_raw_public_key(key->pkey, raw, &size) != 1)
		return err_make(err, ERR_UNSUPPORTED, "libcrypto does not give the public key");
	int r = key_sign(key, "", 0, signature, err);
	if (r < 0)
		return r;
	return key_file_publish(state_dir, raw, err);
}

int key_open(const char *state_dir, struct key **ret_key, struct err *err)
{
	uint8_t seed[KEY_SIZE];
	struct key *key = NULL;

	int r = key_start_crypto(err);
	if (r < 0)
		return r;
	r = key_file_load(state_dir, seed, err);
	if (r < 0)
		return r;
	EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof(seed));
	OPENSSL_cleanse(seed, sizeof(seed));
	r = wrap(pkey, &key, err);
	if (r == 0)
		r = prepare(key, state_dir, err);
	if (r < 0) {
		key_close(key);
		return r;
	}
	*ret_key = key;
	return 0;
}

int key_open_public(const uint8_t raw[static KEY_SIZE], struct key **ret_key, struct err *err)
{
	int r = key_start_crypto(err);
	if (r < 0)
		return r;
	return wrap(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw, KEY_SIZE), ret_key,
		    err);
}

void key_close(struct key *key)
{
	if (!key)
		return;
	EVP_MD_CTX_free(key->context);
	EVP_PKEY_free(key->pkey);
	free(key);
}

const char *key_id(const struct key *key)
{
	return key->id;
}

int key_sign(struct key *key, const void *data, size_t len,
	     uint8_t ret_signature[static KEY_SIGNATURE_SIZE], struct err *err)
{
	size_t size = KEY_SIGNATURE_SIZE;

	if (EVP_MD_CTX_reset(key->context) != 1 ||
	    EVP_DigestSignInit(key->context, NULL, NULL, NULL, key->pkey) != 1 ||
	    EVP_DigestSign(key->context, ret_signature, &size, data, len) != 1 ||
	    size != KEY_SIGNATURE_SIZE)
		return err_make(err, ERR_UNSUPPORTED, "libcrypto does not sign with Ed25519");
	return 0;
}

bool key_has_signed(struct key *key, const void *data, size_t len,
		    const uint8_t signature[static KEY_SIGNATURE_SIZE])
{
	return EVP_MD_CTX_reset(key->context) == 1 &&
	       EVP_DigestVerifyInit(key->context, NULL, NULL, NULL, key->pkey) == 1 &&
	       EVP_DigestVerify(key->context, signature, KEY_SIGNATURE_SIZE, data, len) == 1;
}
