# SPDX-License-Identifier: Apache-2.0
"""What every Python must be able to do: its modules, compiled ones too, and children."""
import bz2
import concurrent.futures
import ctypes
import datetime
import decimal
import hashlib
import json
import lzma
import math
import multiprocessing
import random
import sqlite3
import ssl
import subprocess
import sys
import unicodedata
import uuid
import xml.etree.ElementTree
import zlib


def double(n):
    return 2 * n


if __name__ == "__main__":
    print(f"python {sys.version_info.major}.{sys.version_info.minor}")
    print(decimal.Decimal("0.1") + decimal.Decimal("0.2"), math.comb(40, 20), end=" ")
    print(round(math.gamma(0.5), 6))
    print(lzma.decompress(lzma.compress(b"l")), bz2.decompress(bz2.compress(b"b")), end=" ")
    print(zlib.crc32(b"z"))
    print(hashlib.blake2b(b"cay").hexdigest()[:12], random.Random(7).sample(range(100), 5))
    print(ctypes.CDLL(None).abs(-5), unicodedata.name("é"), uuid.uuid5(uuid.NAMESPACE_DNS, "cay"))
    print(datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc).isoformat())
    print(json.dumps(xml.etree.ElementTree.fromstring("<a b='c'/>").attrib), ssl.HAS_TLSv1_3)
    print(sqlite3.connect(":memory:").execute("select 6 * 7").fetchone())
    print(subprocess.check_output([sys.executable, "-c", "print('child')"]).strip())
    with multiprocessing.Pool(2) as pool, concurrent.futures.ThreadPoolExecutor(2) as threads:
        print(pool.map(double, range(5)), list(threads.map(double, range(5))))
