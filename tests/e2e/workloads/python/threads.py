# SPDX-License-Identifier: Apache-2.0
"""Threads: many of them, a queue, a pool, events, thread-local data."""
import concurrent.futures
import hashlib
import queue
import threading


def many():
    counter, lock = [0], threading.Lock()

    def count():
        for _ in range(1000):
            with lock:
                counter[0] += 1

    threads = [threading.Thread(target=count) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("counted", counter[0])


def pipeline():
    tasks, results = queue.Queue(maxsize=4), queue.Queue()

    def work():
        while (n := tasks.get()) is not None:
            results.put(n * 2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for n in range(50):
        tasks.put(n)
    for _ in threads:
        tasks.put(None)
    for thread in threads:
        thread.join()
    print("queue", sum(results.get() for _ in range(50)))


def pool():
    with concurrent.futures.ThreadPoolExecutor(8) as executor:
        digests = executor.map(lambda n: hashlib.sha256(bytes(n)).hexdigest()[:8], range(4))
    print("pool", *digests)


def events():
    ready, local = threading.Event(), threading.local()
    local.name = "main"

    def other():
        local.name = "other"
        ready.set()

    thread = threading.Thread(target=other)
    thread.start()
    print("event", ready.wait(30), local.name)
    thread.join()


many()
pipeline()
pool()
events()
