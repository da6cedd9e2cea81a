#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A terminal of its own for a command, and a size and a controlling session in it.
set -eu
export TERM=xterm
script -qec 'test -t 0 && test -t 1 && echo "a terminal"' /dev/null </dev/null | tr -d '\r'
script -qec 'stty rows 33 cols 99; stty size' /dev/null </dev/null | tr -d '\r'
script -qec 'exit 5' /dev/null </dev/null || echo "code $?"
script -qec 'echo to the terminal >/dev/tty' /dev/null </dev/null | tr -d '\r'
test -t 0 || echo "no terminal here"
setsid sh -c 'echo "a session of its own"'
