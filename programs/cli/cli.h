/* SPDX-License-Identifier: Apache-2.0
 *
 * cli.h - the commands of `cay`.
 *
 * A command is a function like main(): argv[0] is the command's own name, the value it returns is
 * the exit code.  Each reads its arguments with options_parse() (options.h), speaks to the person
 * with say.h, and keeps what outlives it in state_dir() (state.h).  The table is in main.c:
 * a new command is one line there and one file cmd_NAME.c. */
#pragma once

enum exit_code {
	EXIT_DONE = 0,
	EXIT_PLAIN_FAILURE = 1, /* `cay receipt verify` found a bad one, and the like */
	EXIT_USAGE = 2,
	EXIT_RAN_TOO_LONG = 124,
	EXIT_CAY_FAILED = 125,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NO_COMMAND = 127,
	EXIT_SIGNAL = 128, /* plus the signal */
};

int cmd_run(int argc, char **argv);
int cmd_receipt(int argc, char **argv);
int cmd_runtimes(int argc, char **argv);
int cmd_runtime(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_help(int argc, char **argv);
