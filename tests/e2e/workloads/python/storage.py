# SPDX-License-Identifier: Apache-2.0
"""sqlite on disk with several connections, zip, tar, gzip, locks, mmap, a virtual environment."""
import fcntl
import gzip
import hashlib
import json
import mmap
import os
import sqlite3
import subprocess
import tarfile
import tempfile
import venv
import zipfile


def database():
    with sqlite3.connect("beach.db") as db:
        print("journal", db.execute("pragma journal_mode=wal").fetchone()[0])
        db.execute("create table sand (id integer primary key, grain real, kind text)")
        db.executemany("insert into sand (grain, kind) values (?, ?)",
                       [(n / 10, "fine" if n < 500 else "coarse") for n in range(1000)])
    other = sqlite3.connect("beach.db")
    query = "select kind, count(*), round(sum(grain), 1) from sand group by kind order by kind"
    print("rows", other.execute(query).fetchall())
    print("check", other.execute("pragma integrity_check").fetchone()[0])
    other.close()
    db.close()


def archives():
    os.makedirs("tree/deep")
    for name in ("tree/a.txt", "tree/deep/b.txt"):
        with open(name, "w") as f:
            f.write(name * 100)
    os.symlink("a.txt", "tree/link")
    with zipfile.ZipFile("tree.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.write("tree/a.txt")
        z.write("tree/deep/b.txt")
    with zipfile.ZipFile("tree.zip") as z:
        print("zip", z.testzip(), z.namelist(), len(z.read("tree/deep/b.txt")))
    for kind in ("gz", "bz2", "xz"):
        with tarfile.open(f"tree.tar.{kind}", f"w:{kind}") as t:
            t.add("tree")
        with tarfile.open(f"tree.tar.{kind}") as t:
            t.extractall(f"from-{kind}")
            print("tar", kind, sorted(t.getnames()), os.readlink(f"from-{kind}/tree/link"))
    with gzip.open("big.gz", "wb") as f:
        f.write(bytes(1 << 20))
    with gzip.open("big.gz") as f:
        print("gzip", hashlib.sha256(f.read()).hexdigest()[:16])


def files():
    with tempfile.TemporaryFile() as f:
        f.truncate(1 << 16)
        with mmap.mmap(f.fileno(), 0) as m:
            m[4096:4100] = b"reef"
        f.seek(4096)
        print("mmap", f.read(4))
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open("a.json", "w") as f:
        json.dump({"sea": [1, 2]}, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace("a.json", "b.json")
    os.utime("b.json", (1, 2))
    print("file", json.load(open("b.json")), os.stat("b.json").st_mtime)


def environment():
    venv.create("own", with_pip=False)
    code = "import sys; print(sys.prefix != sys.base_prefix, sys.prefix.endswith('own'))"
    print("venv", subprocess.check_output(["own/bin/python", "-c", code]).decode().strip())


database()
archives()
files()
environment()
