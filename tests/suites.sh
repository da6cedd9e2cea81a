# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# The suites of `./dev test`, which reads this file.  A suite is a runner whose output is shown as
# it is and whose closing lines are counted; the leak check looks at the machine before and after.
#
# A runner finds in its environment:
#   CAY            the program under test         CAY_BUILD   the build it is from
#   CAY_STATE      a state directory of its own   CAY_SWITCH  the build with switches for layers
#   CAY_TEST_ROLE  root or user: who it runs as

test_dir=$top/build-test # logs and state of the suites that run as us; layers in it are kept
test_stage=              # a copy of the tree that the ordinary user can read, and its home
test_user=
test_user_made=
passed=0
failed=0
skipped=0
failures=()
steps_done=

note_failure() {
	failed=$((failed + 1))
	failures+=("$1")
	say "FAILED: $1"
}

# Adds up the closing lines of meson test, pytest, the fuzzers and the virtual machine: prints
# passed, failed, skipped.
count_results() {
	awk '
	/^Ok: +[0-9]/ { ok += $2 }
	/^(Fail|Unexpected Pass|Timeout): +[0-9]/ { bad += $NF }
	/^Skipped: +[0-9]/ { skip += $NF }
	/^=+ .* in [0-9.]+s/ || /^(fuzz: )?[0-9]+ passed, [0-9]+ failed/ {
		gsub(/[=,]/, " ")
		for (i = 2; i <= NF; i++) {
			if ($i == "passed") ok += $(i - 1)
			if ($i == "failed" || $i ~ /^errors?$/) bad += $(i - 1)
			if ($i == "skipped") skip += $(i - 1)
		}
	}
	END { print ok + 0, bad + 0, skip + 0 }' "$1"
}

# suite NAME SECONDS COMMAND...: runs it between two looks at the machine.
suite() {
	local name=$1 seconds=$2 status=0 began=$SECONDS ok bad skip suite_log shown
	shift 2
	printf '\n--- %s\n' "$name"
	suite_log=$test_dir/${name// /-}.log
	leakcheck before "$suite_log.before" "$test_dir/state" ${test_stage:+"$test_stage/home/state"}
	# Not through a pipe: a process that was left behind would hold it open, and we would wait for
	# the very thing we look for.
	: >"$suite_log"
	tail -n +1 -f -s 0.1 --pid=$$ "$suite_log" &
	shown=$!
	timeout --kill-after=10 "$seconds" "$@" </dev/null >>"$suite_log" 2>&1 || status=$?
	sleep 0.5
	kill "$shown"
	wait "$shown" 2>/dev/null || true
	[ "$name" != vm ] || printf '%s\n' "$(tail -n 1 "$suite_log")" >"$suite_log"
	read -r ok bad skip < <(count_results "$suite_log")
	passed=$((passed + ok))
	skipped=$((skipped + skip))
	failed=$((failed + bad))
	[ "$bad" = 0 ] || failures+=("$name: $bad")
	if [ "$status" = 124 ] || [ "$status" = 137 ]; then
		note_failure "$name: not finished after $seconds s"
	elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		note_failure "$name: the runner ended with code $status"
	elif [ "$status" = 0 ] && [ $((ok + skip)) = 0 ]; then
		note_failure "$name: no test ran"
	fi
	leakcheck after "$suite_log.before" || note_failure "$name: the leak check found differences"
	printf -- '--- %s: %d s\n' "$name" $((SECONDS - began))
}

leakcheck() { /usr/bin/python3 "$top/tests/leakcheck.py" "$@"; }

step() { # step NAME FUNCTION: a build that must succeed; done once
	local began=$SECONDS
	case $steps_done in *"|$1|"*) return 0 ;; esac
	printf '\n--- %s\n' "$1"
	if ("$2"); then
		passed=$((passed + 1))
		steps_done="$steps_done|$1|"
		printf -- '--- %s: %d s\n' "$1" $((SECONDS - began))
	else
		note_failure "$1"
		return 1
	fi
}

# --- the ordinary user ------------------------------------------------------------------------

free_subid() { # the first id after every range that is given out
	awk -F: '{ end = $2 + $3; if (end > max) max = end } END { print (max < 100000 ? 100000 : max) }' \
		/etc/subuid /etc/subgid 2>/dev/null || echo 100000
}

make_user() {
	local first
	if [ -n "$test_stage" ]; then
		stage_builds
		return
	fi
	test_user=${CAY_TEST_USER:-cay-test}
	if ! id -u "$test_user" >/dev/null 2>&1; then
		useradd --system --user-group --no-create-home --home-dir /nonexistent \
			--shell /bin/sh "$test_user" || return 1
		test_user_made=1
		first=$(free_subid)
		usermod --add-subuids "$first-$((first + 65535))" \
			--add-subgids "$first-$((first + 65535))" "$test_user" || return 1
	fi
	test_stage=$(mktemp -d /var/tmp/cay-test.XXXXXX) && chmod 755 "$test_stage" &&
		mkdir "$test_stage/tree" "$test_stage/home" || return 1
	tar -C "$top" --exclude=./.git --exclude='./build*' -cf - . |
		tar -C "$test_stage/tree" -xf - || return 1
	mkdir -m 700 "$test_stage/home/state" "$test_stage/home/tmp" && stage_builds
}

# Each time anew: a build may have been made since.
stage_builds() {
	local name
	for name in build build-switch; do
		rm -rf "${test_stage:?}/tree/$name"
		if [ -d "$top/$name" ]; then
			cp -R "$top/$name" "$test_stage/tree/$name" || return 1
		fi
	done
	chown -R "$test_user": "$test_stage/tree" "$test_stage/home"
}

remove_user() {
	if [ -n "$test_stage" ]; then
		rm -rf "$test_stage"
	fi
	if [ -n "$test_user_made" ]; then
		userdel "$test_user" 2>/dev/null || say "dev: the user '$test_user' could not be removed"
	fi
}

# --- runners ----------------------------------------------------------------------------------

pytest_here() { # the command line that runs a folder of tests, one word per line
	local role=$1 tree=$2 folder=$3 state=$4 home=$5 tmp=$6 name
	printf '%s\n' env --chdir="$tree" -i
	# How this machine reaches a package index.
	for name in "${!PIP_@}" http_proxy https_proxy no_proxy SSL_CERT_FILE REQUESTS_CA_BUNDLE; do
		[ -z "${!name:-}" ] || printf '%s=%s\n' "$name" "${!name}"
	done
	printf '%s\n' "HOME=$home" "TMPDIR=$tmp" "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
		LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 "LEAKCHECK_TOKEN=$LEAKCHECK_TOKEN" "CAY_TEST_ROLE=$role" \
		"CAY=$tree/build/cay" "CAY_BUILD=$tree/build" "CAY_SWITCH=$tree/build-switch" "CAY_STATE=$state" \
		/usr/bin/python3 -m pytest -p no:cacheprovider --color=no -rsfE --tb=short --rootdir="$tree/tests" \
		"$tree/tests/$folder"
}

pytest_as_us() { # pytest_as_us FOLDER SECONDS
	local words role=user
	[ "$(id -u)" != 0 ] || role=root
	mapfile -t words < <(pytest_here "$role" "$top" "$1" "$test_dir/state" \
		"${HOME:-/root}" "${TMPDIR:-/tmp}")
	suite "$1 as $role" "$2" "${words[@]}"
}

pytest_as_user() {
	local words
	if ! make_user; then
		note_failure "$1 as user: no ordinary user could be made"
		return 1
	fi
	mapfile -t words < <(pytest_here user "$test_stage/tree" "$1" "$test_stage/home/state" \
		"$test_stage/home" "$test_stage/home/tmp")
	suite "$1 as user" "$2" setpriv --reuid="$(id -u "$test_user")" --regid="$(id -g "$test_user")" \
		--init-groups --reset-env -- "${words[@]}"
}

pytest_both() {
	pytest_as_us "$@"
	if [ "$(id -u)" = 0 ]; then
		pytest_as_user "$@"
	else
		say "dev: $1 as root is left out: this is not root"
	fi
}

test_build() { step "build with gcc" build_release; }
test_unit() { test_build && suite unit 300 meson test -C "$build" --print-errorlogs --no-rebuild; }
test_clang() {
	step "build with clang" build_clang &&
		suite "unit with clang" 300 meson test -C "$top/build-clang" --print-errorlogs --no-rebuild
}
test_asan() {
	step "build with sanitizers" build_asan &&
		suite "unit with sanitizers" 600 env ASAN_OPTIONS=abort_on_error=1 \
			UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
			meson test -C "$top/build-asan" --print-errorlogs --no-rebuild --timeout-multiplier 4
}
test_e2e() { test_build && pytest_both e2e 1800; }
test_escape() {
	test_build && step "build with layer switches" build_switch && pytest_both escape 600
}
test_fuzz() {
	step "build the fuzzers" build_fuzz && suite fuzz 600 "$top/tests/fuzz/run" "$top/build-fuzz" 10
}
test_vm() { test_build && suite vm 1800 env "CAY_BUILD=$build" "$top/tests/vm/run"; }

test_main() {
	local names=("$@") name
	[ $# -gt 0 ] || names=(unit clang asan e2e escape fuzz)
	[ "$*" != all ] || names=(unit clang asan e2e escape fuzz vm)
	for name in "${names[@]}"; do
		case $name in
		build | unit | clang | asan | e2e | escape | fuzz | vm) ;;
		*) die "test knows build unit clang asan e2e escape fuzz vm and all, not '$name'" ;;
		esac
	done
	setup test
	case " ${names[*]} " in *" vm "*) setup vm ;; esac
	mkdir -p "$test_dir/state"
	chmod 700 "$test_dir/state"
	# Descendants of a suite are known by this, wherever they end up.
	LEAKCHECK_TOKEN=$$-$(date +%s)
	export LEAKCHECK_TOKEN
	trap remove_user EXIT
	for name in "${names[@]}"; do
		"test_$name" || true
	done

	printf '\n'
	[ $skipped = 0 ] || printf '%d skipped (the reasons stand above)\n' "$skipped"
	[ ${#failures[@]} = 0 ] || printf 'failed: %s\n' "${failures[@]}"
	printf '%d passed, %d failed\n' "$passed" "$failed"
	[ "$failed" = 0 ]
}
