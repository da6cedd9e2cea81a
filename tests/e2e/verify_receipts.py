#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""verify_receipts.py CHAIN PUB - checks a chain of receipts without any code of cay.

Written from the DSSE protocol (PAE, envelope), the in-toto Statement v1 and
docs/protocol/receipt.md.  The signatures are checked by the `cryptography` package where it is
installed, else by the `openssl` command.  Prints `valid N HEAD`, or `invalid LINE REASON`.
"""

import base64
import hashlib
import json
import subprocess
import sys
import tempfile

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:cay:receipt:v1"
ED25519_SPKI = bytes.fromhex("302a300506032b6570032100")


class Bad(Exception):
    pass


def raw_public_key(pem_path):
    with open(pem_path) as f:
        body = "".join(l.strip() for l in f if not l.startswith("-----"))
    der = base64.b64decode(body, validate=True)
    if der[:12] != ED25519_SPKI or len(der) != 44:
        raise SystemExit(f"{pem_path}: not an Ed25519 public key")
    return der[12:]


def verify_with_package(public_key):
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(public_key)

    def verify(signature, message):
        try:
            key.verify(signature, message)
            return True
        except InvalidSignature:
            return False

    return verify


def verify_with_command(pem_path):
    def verify(signature, message):
        with tempfile.NamedTemporaryFile() as sig, tempfile.NamedTemporaryFile() as text:
            sig.write(signature)
            sig.flush()
            text.write(message)
            text.flush()
            return subprocess.run(
                ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", pem_path, "-rawin",
                 "-in", text.name, "-sigfile", sig.name],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    return verify


def verifier(pem_path):
    try:
        return verify_with_package(raw_public_key(pem_path))
    except ImportError:
        return verify_with_command(pem_path)


def pae(payload_type, payload):
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def unbase64(text):
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise Bad("format: base64 is not canonical")
    return data


def check_statement(statement, seq, prev):
    if statement["_type"] != STATEMENT_TYPE or statement["predicateType"] != PREDICATE_TYPE:
        raise Bad("format: not a receipt")
    for subject in statement["subject"]:
        if len(bytes.fromhex(subject["digest"]["sha256"])) != 32 or not subject["name"]:
            raise Bad("format: subject")
    predicate = statement["predicate"]
    if predicate["seq"] != seq:
        raise Bad(f"order: seq {predicate['seq']} where {seq} must follow")
    if predicate["prev"] != prev:
        raise Bad("chain: prev is not the hash of the one before")


def check_line(line, key_id, verify, seq, prev):
    """Returns the hash of the statement's bytes."""
    envelope = json.loads(line)
    if set(envelope) != {"payloadType", "payload", "signatures"}:
        raise Bad("format: members of the envelope")
    if envelope["payloadType"] != PAYLOAD_TYPE or len(envelope["signatures"]) != 1:
        raise Bad("format: envelope")
    payload = unbase64(envelope["payload"])
    signature = envelope["signatures"][0]
    if signature["keyid"] != key_id:
        raise Bad("key: not the one given")
    if not verify(unbase64(signature["sig"]), pae(PAYLOAD_TYPE, payload)):
        raise Bad("signature: does not fit")
    check_statement(json.loads(payload), seq, prev)
    return hashlib.sha256(payload).hexdigest()


def check_chain(path, pem_path):
    verify = verifier(pem_path)
    key_id = hashlib.sha256(raw_public_key(pem_path)).hexdigest()
    head, n = "0" * 64, 0
    with open(path, "rb") as f:
        for line in f:
            if not line.endswith(b"\n"):
                break  # torn: never a record
            if len(line) > 65536:
                raise Bad(f"{n + 1} format: line too long")
            try:
                head = check_line(line, key_id, verify, n + 1, head)
            except Bad as e:
                raise Bad(f"{n + 1} {e}")
            except (ValueError, KeyError, TypeError) as e:
                raise Bad(f"{n + 1} format: {type(e).__name__}")
            n += 1
    return n, head


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: verify_receipts.py CHAIN PUB")
    try:
        n, head = check_chain(sys.argv[1], sys.argv[2])
    except Bad as e:
        print("invalid", e)
        return 1
    print("valid", n, head)
    return 0


if __name__ == "__main__":
    sys.exit(main())
