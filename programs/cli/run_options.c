/* SPDX-License-Identifier: Apache-2.0 */
#include "run_options.h"

#define AT(field) offsetof(struct run_options, field)

static const struct option options[] = {
	{ "code", 'c', OPTION_TEXT, AT(code), "CODE", "run this code instead of a file" },
	{ "lang", 'l', OPTION_TEXT, AT(lang), "NAME[@VERSION]",
	  "language: python, python@3.10, node, bash, c" },
	{ "in", 0, OPTION_LIST, AT(inputs), "FILE", "show FILE in /workspace/input (repeatable)" },
	{ "out", 0, OPTION_LIST, AT(outs), "GLOB[=DIR]",
	  "bring files of /workspace back, into DIR (repeatable)" },
	{ "force", 0, OPTION_FLAG, AT(force), NULL, "results may replace files that exist" },
	{ "workspace", 0, OPTION_TEXT, AT(workspace), "none|DIR[:ro|rw]",
	  "use DIR as /workspace, or have none" },
	{ "cwd", 'w', OPTION_TEXT, AT(cwd), "DIR", "working directory inside" },
	{ "env", 'e', OPTION_LIST, AT(env), "KEY[=VALUE]", "set a variable, or pass ours on" },
	{ "env-file", 0, OPTION_LIST, AT(env_files), "FILE", "read KEY=VALUE lines" },
	{ "interactive", 'i', OPTION_FLAG, AT(interactive), NULL, "pass stdin on from a terminal" },
	{ "profile", 0, OPTION_TEXT, AT(profile), "NAME", "limits: tiny, small, standard, large" },
	{ "cpus", 0, OPTION_MILLIS, AT(cpus), "N", "cores: 2 or 0.5" },
	{ "memory", 0, OPTION_SIZE, AT(memory), "SIZE", "memory: 512M or 1.5G" },
	{ "disk", 0, OPTION_SIZE, AT(disk), "SIZE", "size of /workspace" },
	{ "pids", 0, OPTION_NUMBER, AT(pids), "N", "processes and threads" },
	{ "open-files", 0, OPTION_NUMBER, AT(open_files), "N", "open files per process" },
	{ "timeout", 0, OPTION_DURATION, AT(timeout), "TIME", "wall clock: 30s, 5m" },
	{ "cpu-time", 0, OPTION_DURATION, AT(cpu_time), "TIME",
	  "processor time, of all processes" },
	{ "output", 0, OPTION_SIZE, AT(output), "SIZE", "kept of stdout and of stderr, each" },
	{ "isolation", 0, OPTION_TEXT, AT(isolation), "TIER", "exactly this tier, or a refusal" },
	{ "require", 0, OPTION_LIST, AT(require), "LAYER,...",
	  "refuse where one of them is absent" },
	{ "image", 0, OPTION_TEXT, AT(image), "DIR",
	  "an unpacked root file system instead of /usr" },
	{ "no-libraries", 0, OPTION_FLAG, AT(no_layer), NULL,
	  "leave out libraries that `cay runtime add` laid over the language" },
	{ "json", 0, OPTION_FLAG, AT(json), NULL, "print one JSON document at the end" },
	{ "quiet", 'q', OPTION_FLAG, AT(quiet), NULL, "say nothing but errors" },
	{ "verbose", 'v', OPTION_FLAG, AT(verbose), NULL,
	  "say what is done and how long it takes" },
	{ 0 },
};

const struct option_set run_option_set = {
	.usage = "cay run [flags] FILE [ARGUMENT...]\n"
		 "       cay run [flags] -            code from stdin\n"
		 "       cay run [flags] -c CODE [ARGUMENT...]\n"
		 "       cay run [flags] -- PROGRAM [ARGUMENT...]",
	.about = "Runs a program in a jail, with limits and a signed receipt.  The language "
		 "follows\n"
		 "from --lang, the first line (#!) or the name of the file.  What the program "
		 "leaves\n"
		 "in /workspace/output comes back to the current folder.",
	.options = options,
	.notes = "Arguments of the program that begin with a dash go after `--`.\n\n"
		 "Exit code: the program's own; 124 out of time, 125 cay failed, 126 not "
		 "executable,\n"
		 "127 not found, 128+n ended by signal n, 2 wrong usage.\n",
	.has_limits = true,
	.instead = "code",
};

void run_options_finish(struct run_options *o)
{
	text_list_finish(&o->inputs);
	text_list_finish(&o->outs);
	text_list_finish(&o->env);
	text_list_finish(&o->env_files);
	text_list_finish(&o->require);
}
