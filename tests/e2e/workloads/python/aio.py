# SPDX-License-Identifier: Apache-2.0
"""asyncio: tasks, subprocesses, a server and its clients on the loopback, a thread, a signal."""
import asyncio
import http.server
import os
import signal
import threading
import time
import urllib.request


async def serve(reader, writer):
    line = await reader.readline()
    writer.write(line.upper())
    await writer.drain()
    writer.close()


async def ask(port, text):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode() + b"\n")
    answer = await reader.read()
    writer.close()
    return answer.decode().strip()


async def network():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        print("tcp", *await asyncio.gather(*(ask(port, f"hello {n}") for n in range(5))))
    server = await asyncio.start_unix_server(serve, "echo.sock")
    async with server:
        reader, writer = await asyncio.open_unix_connection("echo.sock")
        writer.write(b"unix\n")
        print((await reader.read()).decode().strip())
        writer.close()
    if os.path.exists("echo.sock"):
        os.unlink("echo.sock")


async def processes():
    process = await asyncio.create_subprocess_exec(
        "cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate(b"x" * 200000)
    print("cat", len(out), process.returncode)
    shells = [asyncio.create_subprocess_shell(f"exit {n}") for n in range(3)]
    print("codes", [await shell.wait() for shell in await asyncio.gather(*shells)])


async def rest():
    loop = asyncio.get_running_loop()
    print("thread", await asyncio.to_thread(sum, range(10)))
    got = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, got.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(got.wait(), 30)
    try:
        await asyncio.wait_for(asyncio.sleep(60), 0.05)
    except asyncio.TimeoutError:
        print("signal, then timeout")


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_):
        pass


def web():
    server = http.server.ThreadingHTTPServer(("localhost", 0), Page)
    threading.Thread(target=server.serve_forever).start()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://localhost:{server.server_port}/beach") as answer:
        print("http", answer.status, answer.read().decode())
    server.shutdown()
    server.server_close()


async def main():
    await network()
    await processes()
    await rest()


asyncio.run(main())
web()
print("clock", time.monotonic() > 0 and time.time() > 1.7e9)
