/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_receipt.c - `cay receipt ls|show|verify`: reads the chain of this user, or any file of
 * receipts.  Works offline and changes nothing. */
#include "cmd_receipt.h"

#include "base/auto.h"
#include "base/err.h"
#include "cli.h"
#include "receipt/receipt.h"
#include "say.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JSON_OPTION                                                                                \
	{                                                                                          \
		.name = "json", .kind = OPTION_FLAG, .at = offsetof(struct receipt_options, json), \
		.help = "print one JSON document"                                                  \
	}

int receipt_fail(const struct err *err, bool json)
{
	return say_failure(err, NULL, json, EXIT_CANNOT_TELL);
}

int receipt_open_chain(struct err *err)
{
	char state[PATH_MAX], path[PATH_MAX + sizeof(RECEIPT_CHAIN) + 1];

	int r = state_path(state, err);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/%s", state, RECEIPT_CHAIN);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_make(err, ERR_NOT_FOUND, "there are no receipts in '%s' yet", state);
	return fd < 0 ? err_errno(err, errno, "open '%s'", path) : fd;
}

int receipt_load_keys(const struct text_list *named, struct receipt_keys *ret_keys, struct err *err)
{
	char state[PATH_MAX], path[PATH_MAX + sizeof(RECEIPT_PUBLIC_KEY) + 1];

	for (size_t i = 0; i < named->n; i++) {
		int r = receipt_keys_add_file(ret_keys, named->items[i], err);
		if (r < 0)
			return r;
	}
	if (named->n > 0)
		return 0;
	int r = state_path(state, err);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/%s", state, RECEIPT_PUBLIC_KEY);
	r = receipt_keys_add_file(ret_keys, path, err);
	return r == -ENOENT ? 0 : r;
}

/* JSON as ASCII; the one control character that JSON allows is escaped too. */
void receipt_print_json(const json_t *value)
{
	auto_free char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENSURE_ASCII);

	for (const char *c = text; c && *c; c++)
		if (*c == 0x7f)
			fputs("\\u007f", stdout);
		else
			putchar(*c);
	putchar('\n');
}

static void print_check_json(const struct receipt_check *c)
{
	json_t *bad = json_null();

	if (c->line)
		bad = json_pack("{s:I, s:I, s:s, s:s, s:s}", "line", (json_int_t)c->line, "seq",
				(json_int_t)c->seq, "id", c->id, "fault",
				receipt_fault_name(c->fault), "reason", c->reason);
	json_t *document = json_pack(
		"{s:s, s:I, s:I, s:I, s:s, s:I, s:s, s:o}", "verdict",
		receipt_verdict_name(c->verdict), "good", (json_int_t)c->good, "first_seq",
		(json_int_t)c->first_seq, "last_seq", (json_int_t)c->last_seq, "head", c->head,
		"torn_bytes", (json_int_t)c->torn_bytes, "reason", c->reason, "first_bad", bad);
	receipt_print_json(document);
	json_decref(document);
}

static void print_check(const struct receipt_check *c)
{
	static const char *const words[] = { "valid", "invalid", "cannot tell" };

	printf("%s: ", words[c->verdict]);
	if (c->line)
		printf("line %" PRIu64 ", receipt %" PRIu64 "%s%s: %s: %s\n", c->line, c->seq,
		       c->id[0] ? " " : "", c->id, receipt_fault_name(c->fault), c->reason);
	else if (c->reason[0])
		printf("%s\n", c->reason);
	if (c->good > 0 && c->line)
		printf("good before it: %" PRIu64 "\n", c->good);
	else if (c->good > 0 && c->verdict == RECEIPT_VALID)
		printf("receipts %" PRIu64 " to %" PRIu64 ", head %s\n", c->first_seq, c->last_seq,
		       c->head);
	else if (!c->line && !c->reason[0])
		printf("no receipts\n");
	if (c->torn_bytes)
		printf("after them %" PRIu64 " bytes of a line that was never finished, or is just "
		       "being written; they are no receipt\n",
		       c->torn_bytes);
}

static int open_named(const char *path, struct err *err)
{
	if (!path)
		return receipt_open_chain(err);
	int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
					: open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, "open '%.300s'", path);
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return fd;
	close(fd);
	return err_make(err, ERR_INVALID,
			"'%.300s' is a directory; give a file of receipts, such as " RECEIPT_CHAIN
			" in a state directory",
			path);
}

static int receipt_verify_file(const struct receipt_options *mine, const struct operands *operands)
{
	static const int codes[] = { EXIT_DONE, EXIT_PLAIN_FAILURE, EXIT_CANNOT_TELL };
	struct receipt_keys keys = { 0 };
	struct receipt_check check;
	struct err err;

	if (operands->n > 1) {
		err_make(&err, ERR_INVALID, "`cay receipt verify` takes one file");
		return say_failure(&err, NULL, mine->json, EXIT_USAGE);
	}
	int r = receipt_load_keys(&mine->keys, &keys, &err);
	if (r < 0 && err.kind == ERR_INVALID)
		return say_failure(&err, NULL, mine->json, EXIT_USAGE);
	if (r < 0)
		return receipt_fail(&err, mine->json);
	auto_close int fd = open_named(operands->n ? operands->items[0] : NULL, &err);
	if (fd < 0 || receipt_verify(fd, &keys, mine->part, &check, &err) < 0)
		return receipt_fail(&err, mine->json);
	if (mine->json)
		print_check_json(&check);
	else
		print_check(&check);
	return codes[check.verdict];
}

static const struct option ls_options[] = {
	{ .name = "number",
	  .letter = 'n',
	  .kind = OPTION_NUMBER,
	  .value = "N",
	  .at = offsetof(struct receipt_options, n),
	  .help = "the last N receipts (20)" },
	JSON_OPTION,
	{ 0 },
};

static const struct option show_options[] = {
	{ .name = "key",
	  .kind = OPTION_LIST,
	  .value = "PUB",
	  .at = offsetof(struct receipt_options, keys),
	  .help = "the public key to check the signature with (repeatable)" },
	JSON_OPTION,
	{ 0 },
};

static const struct option verify_options[] = {
	{ .name = "key",
	  .kind = OPTION_LIST,
	  .value = "PUB",
	  .at = offsetof(struct receipt_options, keys),
	  .help = "a public key that is trusted, instead of our own (repeatable)" },
	{ .name = "part",
	  .kind = OPTION_FLAG,
	  .at = offsetof(struct receipt_options, part),
	  .help = "FILE is a piece of a chain; its first receipt may have any number" },
	JSON_OPTION,
	{ 0 },
};

#define EXIT_NOTE "Exit code: 0 valid, 1 invalid, 2 wrong usage, 3 not found or cannot tell.\n"

static const struct sub {
	const char *name;
	char *full_name;
	int (*run)(const struct receipt_options *mine, const struct operands *operands);
	struct option_set set;
} subs[] = {
	{ "ls",
	  "cay receipt ls",
	  receipt_ls,
	  { .usage = "cay receipt ls [-n N] [--json]",
	    .about = "Lists the last receipts, the newest at the end.  Nothing is verified.",
	    .options = ls_options } },
	{ "show",
	  "cay receipt show",
	  receipt_show,
	  { .usage = "cay receipt show ID|NUMBER|last [--key PUB] [--json]",
	    .about = "Shows what a receipt says, and whether its signature is good.  The beginning "
		     "of an\nid is enough.",
	    .options = show_options } },
	{ "verify",
	  "cay receipt verify",
	  receipt_verify_file,
	  { .usage = "cay receipt verify [FILE] [--key PUB] [--part] [--json]",
	    .about = "Checks every signature and that no receipt was changed, removed, added or "
		     "moved, and\nnames the first bad one.  Without FILE the chain of this user; "
		     "`-` is stdin.",
	    .options = verify_options,
	    .notes = EXIT_NOTE } },
};

static const struct option_set overview = {
	.usage = "cay receipt ls|show|verify ...",
	.about = "Every run leaves a signed receipt, chained to the one before it.\n\n"
		 "  ls      list the last ones\n"
		 "  show    print what one says\n"
		 "  verify  check signatures and chain; offline",
	.notes = EXIT_NOTE,
};

static int refuse_sub(int argc, char **argv)
{
	const char *names[ARRAY_LEN(subs)];
	struct operands operands;
	struct err err;

	if (argc < 2 || argv[1][0] == '-') {
		int r = options_parse(&overview, argc, argv, NULL, &operands, &err);
		if (r == OPTIONS_HELPED)
			return EXIT_DONE;
		if (r == 0)
			err_make(&err, ERR_INVALID,
				 "say what to do: `cay receipt ls`, `show` or `verify`");
		return say_failure(&err, NULL, false, EXIT_USAGE);
	}
	for (size_t i = 0; i < ARRAY_LEN(subs); i++)
		names[i] = subs[i].name;
	const char *meant = options_nearest(argv[1], names, ARRAY_LEN(names));
	err_make(&err, ERR_INVALID, "unknown command 'cay receipt %.64s'; %s%s%s", argv[1],
		 meant ? "did you mean '" : "there are ls, show and verify", meant ? meant : "",
		 meant ? "'?" : "");
	return say_failure(&err, NULL, false, EXIT_USAGE);
}

int cmd_receipt(int argc, char **argv)
{
	const struct sub *sub = NULL;
	struct receipt_options mine = { 0 };
	struct operands operands;
	struct err err;

	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(subs); i++)
		if (strcmp(subs[i].name, argv[1]) == 0)
			sub = &subs[i];
	if (!sub)
		return refuse_sub(argc, argv);
	argv[1] = sub->full_name;
	int r = options_parse(&sub->set, argc - 1, argv + 1, &mine, &operands, &err);
	int code = EXIT_DONE;
	if (r < 0)
		code = say_failure(&err, NULL, mine.json, EXIT_USAGE);
	else if (r != OPTIONS_HELPED)
		code = sub->run(&mine, &operands);
	text_list_finish(&mine.keys);
	return code;
}
