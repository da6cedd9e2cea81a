#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed_agent.sh AGENT OUT - an assembler file that holds the agent's bytes and their sha256.
set -eu
digest=$(sha256sum "$1" | cut -c1-64)
path=$(realpath "$1")
cat >"$2" <<END
	.section .rodata
	.global agent_bytes, agent_bytes_end, agent_digest
	.balign 16
agent_bytes:
	.incbin "$path"
agent_bytes_end:
	.byte 0
agent_digest:
	.asciz "$digest"
	.section .note.GNU-stack,"",@progbits
END
