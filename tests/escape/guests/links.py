# SPDX-License-Identifier: Apache-2.0
"""D020, D138: leaves things in /workspace/output that are no files."""

import os
import socket

os.chdir("/workspace/output")
os.symlink("/etc/passwd", "passwd")
os.symlink("/etc/shadow", "shadow")
os.symlink("/proc/self/environ", "environ")
os.symlink("../../other", "other")
os.symlink("/", "root")
os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("socket")
os.mkdir("dir")
os.symlink("/etc", "dir/etc")
os.link("fifo", "fifo2")
with open("real", "w") as file:
    file.write("real")
