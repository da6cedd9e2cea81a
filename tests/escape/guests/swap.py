# SPDX-License-Identifier: Apache-2.0
"""D139: a child that survives its parent keeps swapping a file for a link while results come back."""

import os
import time

os.chdir("/workspace/output")
for name in ("a", "b", "c"):
    with open(name, "w") as file:
        file.write("mine")
if os.fork() == 0:
    os.setsid()
    end = time.monotonic() + 5
    while time.monotonic() < end:
        for name in ("a", "b", "c"):
            os.symlink("/etc/passwd", "link")
            os.rename("link", name)
            with open("file", "w") as file:
                file.write("mine")
            os.rename("file", name)
    os._exit(0)
