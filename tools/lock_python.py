#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write runtimes/python/data-X.Y.txt: the `data` set of libraries, pinned with hashes.

    tools/lock_python.py OUTPUT_DIR PYTHON...

Each PYTHON resolves the set with its own pip for its own version; one lock per version is
written.  Wheels only: nothing is ever built.  The hashes of every Linux wheel (x86_64 and
aarch64, glibc) that fits the version are kept, so that one lock serves both machines.
"""

import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

DATA = ("numpy pandas matplotlib scikit-learn pyarrow requests pillow python-dateutil scipy "
        "openpyxl reportlab").split()
INDEX = "https://pypi.org/simple"
HEADER = """# Libraries of `cay runtime add python@{version} --with data`.
# Made by tools/lock_python.py; asked for: {asked}.
"""


def resolve(python):
    """(name, version) of everything that the set needs, as that interpreter's pip decides."""
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "report.json"
        subprocess.run([python, "-I", "-m", "pip", "install", "--quiet", "--dry-run",
                        "--ignore-installed", "--only-binary", ":all:", "--target", scratch,
                        "--report", str(report), *DATA],
                       check=True)
        found = json.loads(report.read_text())["install"]
    return sorted((normal(item["metadata"]["name"]), item["metadata"]["version"])
                  for item in found)


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def wheels(name, version):
    """Name of each wheel of a release -> its sha256, from the index's page."""
    with urllib.request.urlopen(f"{INDEX}/{name}/") as answer:
        page = answer.read().decode()
    found = {}
    for link in re.findall(r"<a ([^>]*)>", page):
        target = re.search(r'href="([^"#]*)#sha256=([0-9a-f]{64})"', html.unescape(link))
        if target and "data-yanked" not in link:
            filename = urllib.parse.unquote(target[1].rsplit("/", 1)[-1])
            if filename.endswith(".whl") and filename.split("-")[1] == version:
                found[filename] = target[2]
    return found


def fits(filename, short):
    """Does a wheel serve CPython `short` (312) on Linux with glibc?"""
    python, abi, platform = filename[:-len(".whl")].split("-")[-3:]
    if platform == "any":
        return any(tag in ("py3", f"py{short}") for tag in python.split("."))
    if not re.search(r"manylinux.*(x86_64|aarch64)", platform):
        return False
    if abi == "none":
        return "py3" in python.split(".")
    if abi == "abi3":
        return any(tag.startswith("cp3") and int(tag[3:]) <= int(short[1:])
                   for tag in python.split("."))
    return abi == f"cp{short}"


def lock(python, output):
    version = subprocess.check_output(
        [python, "-Ic", "import sys; print('%d.%d' % sys.version_info[:2])"], text=True).strip()
    lines = [HEADER.format(version=version, asked=" ".join(DATA))]
    for name, release in resolve(python):
        hashes = sorted(digest for filename, digest in wheels(name, release).items()
                        if fits(filename, version.replace(".", "")))
        if not hashes:
            raise SystemExit(f"{name} {release} has no wheel for Python {version}")
        lines.append(" \\\n".join([f"{name}=={release}"] +
                                  [f"    --hash=sha256:{digest}" for digest in hashes]) + "\n")
    path = pathlib.Path(output) / f"data-{version}.txt"
    path.write_text("".join(lines))
    print(path)


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    for python in sys.argv[2:]:
        lock(python, sys.argv[1])


main()
