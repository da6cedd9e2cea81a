#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# test_check_layers.sh CHECK_LAYERS - each rule of the layer check sees its offence.  Speaks TAP.
set -u
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
n=0
status=0

result() { # result OK? SENTENCE
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		status=1
	fi
}

fresh() {
	rm -rf "${tree:?}"/*
	mkdir -p "$tree/lib/base" "$tree/lib/wire" "$tree/lib/receipt" "$tree/lib/runtime" \
		"$tree/programs/agent" "$tree/programs/warden" "$tree/programs/cli" "$tree/tools"
	echo '#include "base/err.h"' >"$tree/programs/warden/main.c"
	: >"$tree/programs/warden/mounts.h"
}

refuses() { # refuses FILE LINE SENTENCE
	fresh
	mkdir -p "$(dirname "$tree/$1")"
	printf '%s\n' "$2" >"$tree/$1"
	! "$check" "$tree" >"$tree/said" && grep -q "^$1:1: " "$tree/said"
	result $? "$3"
}

accepts() {
	fresh
	printf '%s\n' "$2" >"$tree/$1"
	"$check" "$tree" >/dev/null
	result $? "$3"
}

accepts programs/cli/run.c '#include "receipt/receipt.h"' 'the cli may use receipts'
accepts lib/runtime/a.c '#include "receipt/digest.h"' 'a single header can be allowed'
accepts programs/warden/m.c 'sys_mount("x");' 'the warden may mount'
accepts lib/base/a.c '/* mount() and "wire/x.h" in a comment */' 'comments are not code'
refuses lib/base/a.c '#include "wire/frame.h"' 'base includes nothing above it'
refuses lib/runtime/a.c '#include "receipt/receipt.h"' 'and only that header'
refuses programs/warden/a.c '#include "receipt/digest.h"' 'the warden knows no receipts'
refuses programs/agent/a.c '#include "mounts.h"' 'no header of another program'
refuses programs/cli/a.c '#include "../warden/mounts.h"' 'no way around by ..'
refuses programs/cli/a.c '#include "base/deep/x.h"' 'no headers in sub-folders'
refuses programs/cli/deep/a.c '#include "wire/frame.h"' 'no sub-folder without rules'
refuses programs/cli/a.c '#include <base/err.h>' 'no header of ours in angle brackets'
refuses programs/cli/a.c 'sys_mount("x");' 'only the warden mounts'
refuses programs/agent/a.c 'unshare(1);' 'only the warden makes namespaces'
refuses programs/warden/a.c '#include <jansson.h>' 'no JSON in the warden'
refuses programs/warden/a.c '#include <pthread.h>' 'no threads'
refuses programs/cli/a.c 'system("ls");' 'no shell'
refuses lib/wire/a.c 'printf("x");' 'a library says nothing'
echo "1..$n"
exit $status
