#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every include points down, and each power has one home.  A line per offence; part of every
# build and of `./dev lint`.
#
#   check_layers.sh [SOURCE_ROOT [STAMP DEPFILE]]
#
# With STAMP and DEPFILE (as the build calls it) a clean result touches STAMP, and DEPFILE names
# every file and folder that was looked at, so that the check runs again when one changes.
set -eu
root=${1:-$(dirname "$0")/..}
stamp=${2:-}
depfile=${3:-}
from=$PWD
cd "$root"

# Who may include what from lib/: folders, or single headers.  A folder that is not here has no
# rules and is an offence.
rules='
lib/base           base
lib/wire           base wire
lib/receipt        base receipt
lib/runtime        base runtime receipt/digest.h
programs/agent     base wire
programs/warden    base wire
programs/cli       base wire receipt runtime
tools              base wire
'

# What only some may do or name.  Each line: a pattern over code without comments, the folders or
# files where it may stand (`-` for nowhere), and what to say.
powers='
#include[ \t]*<(pthread|threads)\.h>              -                                 threads
#include[ \t]*<seccomp\.h>                        tools                             libseccomp at run time
#include[ \t]*<jansson\.h>                        lib/receipt,programs/cli          JSON
#include[ \t]*<openssl/                           lib/receipt,tools                 OpenSSL
#include[ \t]*<base/|#include[ \t]*<wire/         -                                 our headers in angle brackets
(^|[^a-z_])(sys_)?(mount|umount2|pivot_root|move_mount|fsmount|mount_setattr)\(   programs/warden,programs/cli/doctor,lib/base/sys.h   mounting
(^|[^a-z_])(sys_)?(clone3?|unshare|setns)\(       programs/warden,programs/cli/doctor,lib/base/sys.h   namespaces
(^|[^a-z_])(system|popen)\(                       -                                 a shell
(^|[^a-z_])(strcpy|sprintf|vsprintf|gets|strtok)\(   -                       unbounded string functions
(^|[^a-z_])(printf|puts|perror|exit|_exit|syslog)\(   programs,tools                 logging or ending the process
'

# Text without comments; strings stay, a cgroup path is one.  Prints file:line:text.
without_comments() {
	awk '
	FNR == 1 { inside = 0 }
	{
		text = $0; out = ""
		while (text != "") {
			if (inside) {
				end = index(text, "*/")
				if (!end) break
				text = substr(text, end + 2); inside = 0
				continue
			}
			open = index(text, "/*"); line = index(text, "//")
			if (line && (!open || line < open) && substr(text, line - 1, 1) != ":") {
				out = out substr(text, 1, line - 1); break
			}
			if (!open) { out = out text; break }
			out = out substr(text, 1, open - 1)
			text = substr(text, open + 2); inside = 1
		}
		if (out ~ /[^ \t]/) print FILENAME ":" FNR ":" out
	}' "$@"
}

sources=$(find lib programs tools -name '*.[ch]' | LC_ALL=C sort)
folders=$(find lib programs tools -type d | LC_ALL=C sort)

# shellcheck disable=SC2086  # our own file names: no spaces
offences=$(without_comments $sources | awk -v rules="$rules" -v powers="$powers" -v sources="$sources" '
BEGIN {
	n = split(rules, line, "\n")
	for (i = 1; i <= n; i++)
		if (split(line[i], word, /[ \t]+/) > 1) {
			allowed[word[1]] = " "
			for (j = 2; j in word; j++) allowed[word[1]] = allowed[word[1]] word[j] " "
			split("", word)
		}
	n = split(powers, line, "\n")
	for (i = 1; i <= n; i++) {
		# Three columns, two or more blanks between them.
		if (split(line[i], column, /   +/) < 3) continue
		pattern[++np] = column[1]; home[np] = column[2]; what[np] = column[3]
	}
	n = split(sources, line, "\n")
	for (i = 1; i <= n; i++) exists[line[i]] = 1
}
function offence(text) { print file ":" number ": " text }
function is_home(where, list,    i, n, part) {
	n = split(list, part, ",")
	for (i = 1; i <= n; i++)
		if (index(where, part[i]) == 1) return 1
	return 0
}
function check_include(name,    first, deep) {
	if (name ~ /^\// || name ~ /(^|\/)\.\.?\//) {
		offence("include \"" name "\" by a path that leaves its folder"); return
	}
	if (name !~ /\//) {
		# Own folder, or made by the build; never the private header of someone else.
		if ((folder "/" name) in exists) return
		for (other in exists)
			if (other ~ ("/" name "$")) { offence("\"" name "\" belongs to " other); return }
		return
	}
	first = name; sub(/\/.*/, "", first)
	deep = name; sub(/^[^\/]*\//, "", deep)
	if (deep ~ /\//) { offence("include \"" name "\" from a sub-folder"); return }
	if (index(allowed[folder], " " first " ") || index(allowed[folder], " " name " ")) return
	offence(folder " may not include " name)
}
{
	file = $0; sub(/:.*/, "", file)
	rest = substr($0, length(file) + 2)
	number = rest; sub(/:.*/, "", number)
	text = substr(rest, length(number) + 2)
	folder = file; sub(/\/[^\/]*$/, "", folder)
	if (!(folder in allowed)) {
		if (!(folder in told)) offence("the folder " folder " has no rules in tools/check_layers.sh")
		told[folder] = 1
		next
	}
	if (text ~ /^[ \t]*#[ \t]*include[ \t]*"/) {
		name = text; sub(/^[^"]*"/, "", name); sub(/".*/, "", name)
		check_include(name)
	}
	for (i = 1; i <= np; i++)
		if (text ~ pattern[i] && !is_home(file, home[i]))
			offence(what[i] " has no place in " folder)
}')

if [ -n "$offences" ]; then
	printf '%s\n' "$offences"
	exit 1
fi
if [ -n "$stamp" ]; then
	top=$PWD
	cd "$from"
	: >"$stamp"
	{
		printf '%s:' "$stamp"
		for name in $folders $sources; do
			printf ' %s/%s' "$top" "$name"
		done
		echo
	} >"$depfile"
fi
