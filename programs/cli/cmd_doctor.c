/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_doctor.c - `cay doctor`: asks every question of doctor.h and prints the answers. */
#include "base/auto.h"
#include "base/err.h"
#include "cli.h"
#include "doctor.h"
#include "options.h"
#include "runtime/runtime.h"
#include "say.h"
#include "state.h"
#include "wire/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TITLE_WIDTH 17
#define INDENT (2 + 8 + 2 + TITLE_WIDTH + 2)
#define PATH_OF_ROOT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct doctor_options {
	bool json;
};

static const struct option options[] = {
	{ .name = "json",
	  .kind = OPTION_FLAG,
	  .at = offsetof(struct doctor_options, json),
	  .help = "print one JSON document" },
	{ 0 },
};

static const struct option_set set = {
	.usage = "cay doctor [--json]",
	.about = "Says for each thing that cay builds on whether it is ok, degraded or missing on "
		 "this\n"
		 "machine, what that means, and the command that mends it.  Nothing is changed.",
	.options = options,
	.notes = "Exit code: 0 when `cay run` can work, 1 when something essential is missing.\n",
};

/* How the report looks: plain to a pipe, coloured and wrapped on a terminal. */
struct paper {
	bool colours;
	size_t width; /* 0: lines are not wrapped */
};

struct tally {
	unsigned degraded;
	char essential[256]; /* titles of what `cay run` cannot do without */
	bool can_run;
};

static struct paper choose_paper(void)
{
	struct winsize size;
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	struct paper paper = { 0 };

	if (!isatty(STDOUT_FILENO))
		return paper;
	paper.colours = !(no_colour && *no_colour) && !(term && strcmp(term, "dumb") == 0);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > INDENT + 20)
		paper.width = size.ws_col;
	return paper;
}

static const char *colour_of(enum doctor_status status)
{
	return status == DOCTOR_OK         ? "\033[32m"
	       : status == DOCTOR_DEGRADED ? "\033[33m"
					   : "\033[31m";
}

/* Prints words, the first at column INDENT, and starts a new line there when one is full. */
static void print_wrapped(const struct paper *paper, const char *text)
{
	size_t column = INDENT;

	for (const char *at = text; *at;) {
		size_t len = strcspn(at, " ");
		bool first = at == text;
		if (!first && paper->width && column + 1 + len > paper->width) {
			printf("\n%*s", INDENT, "");
			column = INDENT;
			first = true;
		}
		printf("%s%.*s", first ? "" : " ", (int)len, at);
		column += len + !first;
		at += len;
		at += *at == ' ';
	}
	putchar('\n');
}

static void print_finding(const struct paper *paper, const struct check *check,
			  const struct finding *f)
{
	char text[sizeof(f->found) + sizeof(f->means) + 4];
	bool colours = paper->colours;

	printf("  %s%-8s%s  %-*s  ", colours ? colour_of(f->status) : "",
	       doctor_status_name(f->status), colours ? "\033[0m" : "", TITLE_WIDTH, check->title);
	(void)snprintf(text, sizeof(text), "%s: %s", f->found, f->means);
	print_wrapped(paper, text);
	/* A command is printed whole, so that it can be copied. */
	if (f->mend[0])
		printf("%*s%s%s%s\n", INDENT, "", colours ? "\033[1m$ " : "$ ", f->mend,
		       colours ? "\033[0m" : "");
}

static int add_json(json_t *list, const struct check *check, const struct finding *f)
{
	return json_array_append_new(
		list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "name", check->name, "status",
				doctor_status_name(f->status), "found", f->found, "means", f->means,
				"mend", f->mend, "essential", check->essential));
}

static void count(struct tally *tally, const struct check *check, const struct finding *f)
{
	tally->degraded += f->status == DOCTOR_DEGRADED;
	if (f->status != DOCTOR_MISSING || !check->essential)
		return;
	size_t len = strlen(tally->essential);
	(void)snprintf(tally->essential + len, sizeof(tally->essential) - len, "%s%s",
		       len ? ", " : "", check->title);
	tally->can_run = false;
}

/* Asks everything; prints each answer as it comes, or collects them in `list`. */
static int examine(const struct host *host, const struct paper *paper, json_t *list,
		   struct tally *tally)
{
	for (const struct check_group *g = doctor_groups(); g->title; g++) {
		if (!list)
			printf("%s%s%s%s\n", g == doctor_groups() ? "" : "\n",
			       paper->colours ? "\033[1m" : "", g->title,
			       paper->colours ? "\033[0m" : "");
		for (const struct check *c = g->checks; c->name; c++) {
			struct finding f = { 0 };
			c->run(host, &f);
			count(tally, c, &f);
			if (!list)
				print_finding(paper, c, &f);
			else if (add_json(list, c, &f) < 0)
				return -1;
		}
	}
	return 0;
}

/* The names that --require takes. */
static void print_layers(const struct paper *paper)
{
	char text[512];
	size_t len = 0;

	for (unsigned layer = 0; layer < LAYERS_ && len < sizeof(text); layer++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", layer ? " " : "",
					layer_name(layer));
	printf("\n%s\n  %-*s", "Layers of the jail", INDENT - 2, "for `cay run --require`");
	print_wrapped(paper, text);
}

static json_t *list_layers(void)
{
	json_t *list = json_array();

	for (unsigned layer = 0; layer < LAYERS_; layer++)
		if (json_array_append_new(list, json_string(layer_name(layer))) < 0)
			break;
	return list;
}

static void print_end(const struct paper *paper, const struct tally *tally)
{
	print_layers(paper);
	if (!tally->can_run)
		printf("\n`cay run` cannot work here: %s missing.\n", tally->essential);
	else if (tally->degraded)
		printf("\n`cay run` works here; %u %s degraded.\n", tally->degraded,
		       tally->degraded == 1 ? "thing is" : "things are");
	else
		printf("\n`cay run` works here.\n");
}

static int report(const struct host *host, bool json)
{
	struct tally tally = { .can_run = true };
	struct paper paper = choose_paper();
	json_t *list = json ? json_array() : NULL;
	int r = json && !list ? -1 : examine(host, &paper, list, &tally);

	if (r == 0 && json) {
		json_t *document = json_pack("{s:O, s:o, s:b}", "checks", list, "layers",
					     list_layers(), "can_run", tally.can_run);
		r = document ? json_dumpf(document, stdout, JSON_INDENT(2)) : -1;
		putchar('\n');
		json_decref(document);
	} else if (r == 0) {
		print_end(&paper, &tally);
	}
	json_decref(list);
	if (r < 0) {
		struct err err;
		err_make(&err, ERR_SYSTEM, "the report could not be written");
		return say_failure(&err, NULL, false, EXIT_CAY_FAILED);
	}
	return tally.can_run ? EXIT_DONE : EXIT_PLAIN_FAILURE;
}

static bool is_in_container(const struct host *host)
{
	return host_has(host, ".dockerenv") || host_has(host, "run/.containerenv") ||
	       getenv("container");
}

/* What the checks need to know of us and of the machine. */
static int open_host(struct host *ret_host, char state_text[static PATH_MAX],
		     char path_text[static PATH_MAX], struct err *err)
{
	const struct passwd *me = getpwuid(geteuid());
	const char *path = getenv("PATH");
	int r = state_path(state_text, err);

	if (r < 0)
		return r;
	(void)snprintf(path_text, PATH_MAX, "%s:%s", path && *path ? path : PATH_OF_ROOT,
		       PATH_OF_ROOT);
	*ret_host = (struct host){
		.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
		.uid = geteuid(),
		.gid = getegid(),
		.user = me ? me->pw_name : "",
		.path = path_text,
		.state_dir = state_text,
	};
	if (ret_host->root < 0)
		return err_errno(err, errno, "open '/'");
	ret_host->in_container = is_in_container(ret_host);
	return 0;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_options mine = { 0 };
	struct operands operands;
	struct err err;
	int r = options_parse(&set, argc, argv, &mine, &operands, &err);

	if (r == OPTIONS_HELPED)
		return EXIT_DONE;
	if (r == 0 && operands.n > 0)
		r = err_make(&err, ERR_INVALID, "`cay doctor` takes no argument, not '%.64s'",
			     operands.items[0]);
	if (r < 0)
		return say_failure(&err, NULL, mine.json, EXIT_USAGE);

	char state_text[PATH_MAX], path_text[PATH_MAX];
	struct host host;
	struct err why = { 0 };
	if (open_host(&host, state_text, path_text, &err) < 0)
		return say_failure(&err, NULL, mine.json, EXIT_CAY_FAILED);
	auto_close int root = host.root;
	(void)root;
	if (runtimes_open(host.state_dir, NULL, &host.runtimes, &why) < 0)
		host.runtimes = NULL;
	host.runtimes_why = why.text;
	int code = report(&host, mine.json);
	if (host.runtimes)
		runtimes_close(host.runtimes);
	return code;
}
