# SPDX-License-Identifier: Apache-2.0
"""numpy: arithmetic, linear algebra on several threads, random numbers, files."""
import threading

import numpy as np

a = np.arange(12).reshape(3, 4)
print("sum", a.sum(), a.mean(axis=0), (a @ a.T).trace())
random = np.random.default_rng(7)
m = random.standard_normal((300, 300))
print("solve", np.allclose(m @ np.linalg.solve(m, np.eye(300)), np.eye(300)))
print("integers", np.random.default_rng(7).integers(0, 100, 5))
print("fft", np.round(np.abs(np.fft.rfft(np.sin(np.arange(64) * 2 * np.pi / 8))).argmax(), 3))

products = [None] * 4


def multiply(i):
    products[i] = m @ m


threads = [threading.Thread(target=multiply, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("threads", all(np.array_equal(p, products[0]) for p in products))

np.save("a.npy", a)
mapped = np.load("a.npy", mmap_mode="r")
print("mapped", int(mapped[2, 3]), type(mapped).__name__)
