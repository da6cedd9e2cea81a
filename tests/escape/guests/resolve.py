# SPDX-License-Identifier: Apache-2.0
"""D080: without a network no name is resolved, and nobody waits for it."""

import json
import socket
import time

bad = []
start = time.monotonic()
for name in ("example.com", "metadata.google.internal", "localhost.localdomain.example"):
    try:
        bad.append(f"{name} is {socket.getaddrinfo(name, 443)}")
    except OSError:
        pass
seconds = time.monotonic() - start
if seconds > 1:
    bad.append(f"it took {seconds:.1f} s")
for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
    for address in ("1.1.1.1", "127.0.0.53"):
        with socket.socket(socket.AF_INET, kind) as sock:
            sock.settimeout(0.5)
            try:
                sock.connect((address, 53))
                sock.send(b"\0" * 12)
                sock.recv(1)
                bad.append(f"{address} answers")
            except OSError:
                pass
print(json.dumps({"probe": "D080", "ok": not bad, "detail": bad}))
raise SystemExit(1 if bad else 0)
