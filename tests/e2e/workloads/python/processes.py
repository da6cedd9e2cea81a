# SPDX-License-Identifier: Apache-2.0
"""multiprocessing with each way to start a process and each way to share."""
import concurrent.futures
import multiprocessing
import multiprocessing.shared_memory
import os


def square(n):
    return n * n


def add_to(values, lock, n):
    for _ in range(100):
        with lock:
            values["sum"] = values["sum"] + n


def fill(name):
    shared = multiprocessing.shared_memory.SharedMemory(name)
    shared.buf[:5] = b"shore"
    shared.close()


def answer(pipe):
    pipe.send(pipe.recv()[::-1])


def pools():
    for method in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, sum(pool.map(square, range(100))))
    with concurrent.futures.ProcessPoolExecutor(2) as executor:
        print("executor", list(executor.map(square, range(6))))


def shared_things():
    with multiprocessing.Manager() as manager:
        values, lock = manager.dict(sum=0), manager.Lock()
        workers = [multiprocessing.Process(target=add_to, args=(values, lock, n)) for n in (1, 2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        print("manager", values["sum"])
    shared = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
    worker = multiprocessing.Process(target=fill, args=(shared.name,))
    worker.start()
    worker.join()
    print("shared memory", bytes(shared.buf[:5]))
    shared.close()
    shared.unlink()


def messages():
    ours, theirs = multiprocessing.Pipe()
    worker = multiprocessing.Process(target=answer, args=(theirs,))
    worker.start()
    ours.send("yac")
    print("pipe", ours.recv())
    worker.join()
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    print("fork", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if __name__ == "__main__":
    pools()
    shared_things()
    messages()
