# SPDX-License-Identifier: Apache-2.0
"""subprocess, signals, pipes and a terminal."""
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile


def runs():
    done = subprocess.run(["sort", "-n"], input=b"10\n9\n1\n", capture_output=True, check=True)
    print("sort", done.stdout.split())
    print("shell", subprocess.check_output("echo $((6 * 7)) | tr 4 5", shell=True).strip())
    code = "import sys; sys.stderr.write('no'); sys.exit(3)"
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE)
    print("python", done.returncode, done.stderr)


def ends():
    sleeper = subprocess.Popen(["sleep", "60"])
    sleeper.send_signal(signal.SIGTERM)
    print("terminated", sleeper.wait() == -signal.SIGTERM)
    try:
        subprocess.run(["sleep", "60"], timeout=0.2)
    except subprocess.TimeoutExpired:
        print("timed out")
    try:
        subprocess.run(["no-such-program"])
    except FileNotFoundError as e:
        print("missing", e.filename)
    signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.pause()


def chain():
    first = subprocess.Popen(["seq", "1000"], stdout=subprocess.PIPE)
    last = subprocess.Popen(["wc", "-l"], stdin=first.stdout, stdout=subprocess.PIPE)
    first.stdout.close()
    print("chain", last.communicate()[0].strip(), first.wait())


def terminal():
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("sh", ["sh", "-c", "test -t 0 && test -t 1 && echo a terminal"])
    text = b""
    try:
        while piece := os.read(fd, 1024):
            text += piece
    except OSError:
        pass
    print("pty", text.strip(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def files():
    with tempfile.TemporaryDirectory() as top:
        path = os.path.join(top, "script")
        with open(path, "w") as f:
            f.write("#!/bin/sh\necho $0 | wc -l\n")
        os.chmod(path, 0o755)
        shutil.copy2(path, path + "2")
        os.link(path, path + "3")
        os.symlink("script", path + "4")
        print("scripts", [subprocess.check_output([path + n]).strip() for n in ("", "2", "3", "4")])


for part in (runs, ends, chain, terminal, files):
    part()
    sys.stdout.flush()
