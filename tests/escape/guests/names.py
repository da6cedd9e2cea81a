# SPDX-License-Identifier: Apache-2.0
"""D022: names that upset programs; prints how many were made."""

import os

NAMES = [
    b"new\nline", b"x" * 255, b"\xff\xfe\x80", "\u202etxt.exe".encode(), b"\x1b[31mred\x1b[0m",
    b"tab\t", b"quote\"'", b"back\\slash", b"-rf", b" ", b"*", b"%s%n", "\u2028".encode(),
    b"\xed\xa0\x80", b"\x7f\x01",
]
made = 0
os.chdir(b"/workspace/output")
for name in NAMES:
    with open(name, "wb") as file:
        file.write(b"x")
    made += 1
# A path longer than PATH_MAX, step by step.
for _ in range(20):
    os.mkdir(b"d" * 250)
    os.chdir(b"d" * 250)
with open(b"deep", "wb") as file:
    file.write(b"x")
print(made)
