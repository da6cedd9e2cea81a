# SPDX-License-Identifier: Apache-2.0
"""D059: copying still works where the zero-copy calls do not."""

import json
import os
import shutil
import socket
import subprocess

SOURCE = "/usr/bin/env"
want = open(SOURCE, "rb").read()
bad = []
shutil.copyfile(SOURCE, "/workspace/a")
shutil.copy2(SOURCE, "/workspace/b")
subprocess.run(["cp", SOURCE, "/workspace/c"], check=True)
subprocess.run("cat < /usr/bin/env > /workspace/d", shell=True, check=True)
for name in "abcd":
    if open("/workspace/" + name, "rb").read() != want:
        bad.append(name)
ours, theirs = socket.socketpair()
if os.fork() == 0:
    theirs.close()
    with open(SOURCE, "rb") as file:
        ours.sendfile(file)
    os._exit(0)
ours.close()
got = b""
while piece := theirs.recv(65536):
    got += piece
if got != want:
    bad.append("sendfile")
print(json.dumps({"probe": "D059", "ok": not bad, "detail": bad}))
raise SystemExit(1 if bad else 0)
