/* SPDX-License-Identifier: Apache-2.0 */
#include "base/auto.h"
#include "base/err.h"
#include "cli.h"
#include "options.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "run", "run a program in a jail", cmd_run },
	{ "runtimes", "list the languages that can be run here", cmd_runtimes },
	{ "runtime", "add or remove libraries of a language", cmd_runtime },
	{ "receipt", "list, show and verify the signed records of runs", cmd_receipt },
	{ "doctor", "say what this machine can enforce, and what to change", cmd_doctor },
	{ "version", "print the version", cmd_version },
	{ "help", "explain a command", cmd_help },
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int refuse_command(const char *name)
{
	const char *names[ARRAY_LEN(commands)];
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		names[i] = commands[i].name;
	const char *meant = options_nearest(name, names, ARRAY_LEN(names));
	if (meant)
		err_make(&err, ERR_INVALID, "unknown command '%.64s'; did you mean 'cay %s'?", name,
			 meant);
	else
		err_make(&err, ERR_INVALID, "unknown command '%.64s'; `cay help` lists them", name);
	return say_failure(&err, NULL, false, EXIT_USAGE);
}

static int print_overview(void)
{
	printf("Usage: cay COMMAND [flags] ...\n\n"
	       "Runs code that nobody has read: in a jail, with limits, with a signed receipt.\n\n"
	       "Commands:\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		printf("  %-10s  %s\n", commands[i].name, commands[i].summary);
	printf("\n`cay COMMAND --help` explains one of them.  Try: cay run -c 'print(1 + 1)'\n");
	return EXIT_DONE;
}

int cmd_help(int argc, char **argv)
{
	if (argc < 2 || argv[1][0] == '-')
		return print_overview();
	const struct command *command = find_command(argv[1]);
	if (!command)
		return refuse_command(argv[1]);
	if (command->run == cmd_help)
		return print_overview();
	char *const ask[] = { argv[1], "--help", NULL };
	return command->run(2, (char **)ask);
}

int cmd_version(int argc, char **argv)
{
	static const struct option_set set = { .usage = "cay version",
					       .about = "Prints the version." };
	struct operands operands;
	struct err err;

	int r = options_parse(&set, argc, argv, NULL, &operands, &err);
	if (r < 0)
		return say_failure(&err, NULL, false, EXIT_USAGE);
	if (r == OPTIONS_HELPED)
		return EXIT_DONE;
	puts("cay " CAY_VERSION);
	return EXIT_DONE;
}

/* A closed stdin, stdout or stderr would make the next file we open take its number, and what we
 * print would land in it. */
static int hold_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	if (hold_standard_descriptors() < 0)
		return EXIT_CAY_FAILED;
	/* A reader that goes away is an error of write(), reported like any other. */
	signal(SIGPIPE, SIG_IGN);

	if (argc < 2) {
		struct err err;
		err_make(&err, ERR_INVALID, "a command is missing; `cay help` lists them");
		return say_failure(&err, NULL, false, EXIT_USAGE);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return print_overview();
	if (strcmp(argv[1], "--version") == 0)
		return cmd_version(1, argv + 1);
	const struct command *command = find_command(argv[1]);
	if (!command)
		return refuse_command(argv[1]);
	int code = command->run(argc - 1, argv + 1);
	/* What was printed must have arrived, or success would be a lie. */
	if (fflush(stdout) != 0 && code == EXIT_DONE) {
		struct err err;
		err_errno(&err, errno, "write to stdout");
		return say_failure(&err, NULL, false, EXIT_CAY_FAILED);
	}
	return code;
}
