/* SPDX-License-Identifier: Apache-2.0
 *
 * gen_seccomp - turns the policy into constant data at build time.
 *
 *     gen_seccomp filter > seccomp_filter.c    the BPF programs and their digests
 *     gen_seccomp names > syscalls.c           the calls' names by number
 *
 * libseccomp makes the tree of calls and argument checks, with EPERM where nothing matches.  In
 * front of it stand our own few instructions: foreign architectures end the process, numbers that
 * the policy does not know are ENOSYS.  Numbers and constants are those of the machine that builds.
 */
#include "seccomp_policy.h"

#include <err.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <openssl/sha.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NUMBERS 512
#define X32_BIT 0x40000000u
#define PROGRAM_MAX 4096

static uint32_t arch;

/* How often the policy speaks of each number. */
static unsigned spoken[NUMBERS];

static int find_number(const struct policy_number *numbers, const char *call)
{
	for (; numbers->call; numbers++)
		if (strcmp(numbers->call, call) == 0)
			return numbers->nr;
	return -1;
}

static const char *find_name(const struct policy_number *numbers, int nr)
{
	for (; numbers->call; numbers++)
		if (numbers->nr == nr)
			return numbers->call;
	return NULL;
}

/* The number of a call, or a negative one where this architecture does not have it. */
static int resolve(const char *call)
{
	int nr = find_number(policy_numbers, call);

	if (nr < 0 && arch == SCMP_ARCH_X86_64)
		nr = find_number(policy_numbers_x86_64, call);
	if (nr < 0)
		nr = seccomp_syscall_resolve_name_arch(arch, call);
	if (nr == __NR_SCMP_ERROR)
		errx(1, "nobody knows the call '%s'", call);
	if (nr >= NUMBERS)
		errx(1, "the number %d of '%s' is too large", nr, call);
	return nr;
}

/* The name of a number, to be freed, or NULL. */
static char *resolve_number(int nr)
{
	const char *name = find_name(policy_numbers, nr);

	if (!name && arch == SCMP_ARCH_X86_64)
		name = find_name(policy_numbers_x86_64, nr);
	return name ? strdup(name) : seccomp_syscall_resolve_num_arch(arch, nr);
}

static void add(scmp_filter_ctx ctx, uint32_t action, const char *call)
{
	int nr = resolve(call);

	if (nr < 0)
		return;
	spoken[nr]++;
	/* What the filter answers anyway needs no rule. */
	int rc = action == SCMP_ACT_ERRNO(EPERM) ? 0 : seccomp_rule_add_exact(ctx, action, nr, 0);
	if (rc < 0)
		errx(1, "rule for '%s': %s", call, strerror(-rc));
}

static void add_all(scmp_filter_ctx ctx, uint32_t action, const char *const *calls)
{
	for (; *calls; calls++)
		add(ctx, action, *calls);
}

static void add_rule(scmp_filter_ctx ctx, const struct policy_rule *rule, bool is_first)
{
	struct scmp_arg_cmp when[POLICY_WHEN_MAX];
	unsigned n = 0;
	int nr = resolve(rule->call);

	if (nr < 0)
		return;
	spoken[nr] += is_first;
	for (; n < POLICY_WHEN_MAX && rule->when[n].mask; n++)
		when[n] = (struct scmp_arg_cmp){ rule->when[n].arg, SCMP_CMP_MASKED_EQ,
						 rule->when[n].mask, rule->when[n].value };
	int rc = seccomp_rule_add_exact_array(ctx, SCMP_ACT_ALLOW, nr, n, when);
	if (rc < 0)
		errx(1, "rule for '%s': %s", rule->call, strerror(-rc));
}

static void add_rules(scmp_filter_ctx ctx)
{
	const char *last = "";

	for (const struct policy_rule *rule = policy_rules; rule->call; rule++) {
		add_rule(ctx, rule, strcmp(rule->call, last) != 0);
		last = rule->call;
	}
}

static scmp_filter_ctx make_filter(uint32_t on_tripwire)
{
	/* What this machine's kernel can do says nothing about where the filter will run. */
	seccomp_api_set(6);

	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!ctx)
		errx(1, "no filter");
	if (seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0 ||
	    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0)
		errx(1, "libseccomp does not take our settings");

	memset(spoken, 0, sizeof(spoken));
	add_all(ctx, SCMP_ACT_ALLOW, policy_allowed);
	add_all(ctx, SCMP_ACT_ERRNO(EPERM), policy_denied);
	add_all(ctx, SCMP_ACT_ERRNO(ENOSYS), policy_missing);
	add_all(ctx, on_tripwire, policy_tripwires);
	for (const struct policy_answer *a = policy_answers; a->call; a++)
		add(ctx, SCMP_ACT_ERRNO(a->errnum), a->call);
	add_rules(ctx);
	return ctx;
}

/* Every call that has a name has one place in the policy. */
static void check_policy(void)
{
	bool bad = false;

	for (int nr = 0; nr < NUMBERS; nr++) {
		char *name = resolve_number(nr);

		if (name && spoken[nr] != 1) {
			warnx("the policy speaks of '%s' (%d) %u times", name, nr, spoken[nr]);
			bad = true;
		}
		free(name);
	}
	if (bad)
		exit(1);
}

struct program {
	struct sock_filter insns[PROGRAM_MAX];
	size_t len;
};

static void put(struct program *program, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (program->len >= PROGRAM_MAX)
		errx(1, "the filter is too long");
	program->insns[program->len++] = (struct sock_filter){ code, jt, jf, k };
}

static void put_answer(struct program *program, uint32_t answer)
{
	put(program, BPF_RET | BPF_K, 0, 0, answer);
}

static void put_architecture(struct program *program)
{
	put(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
	put(program, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, arch);
	put_answer(program, SECCOMP_RET_KILL_PROCESS);
	put(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	if (arch != SCMP_ARCH_X86_64)
		return;
	/* x32 shares the architecture; -1 is what a tracer leaves of a skipped call. */
	put(program, BPF_JMP | BPF_JGE | BPF_K, 0, 2, X32_BIT);
	put(program, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, UINT32_MAX);
	put_answer(program, SECCOMP_RET_KILL_PROCESS);
}

/* Numbers from..to - 1 are ENOSYS; to 0 is all from there on. */
static void put_hole(struct program *program, uint32_t from, uint32_t to)
{
	put(program, BPF_JMP | BPF_JGE | BPF_K, 0, to ? 2 : 1, from);
	if (to)
		put(program, BPF_JMP | BPF_JGE | BPF_K, 1, 0, to);
	put_answer(program, SECCOMP_RET_ERRNO | ENOSYS);
}

static void put_holes(struct program *program)
{
	uint32_t nr = 0;

	while (nr < NUMBERS) {
		uint32_t from = nr;

		while (nr < NUMBERS && !spoken[nr])
			nr++;
		if (nr > from)
			put_hole(program, from, nr == NUMBERS ? 0 : nr);
		while (nr < NUMBERS && spoken[nr])
			nr++;
	}
}

static void put_filter(struct program *program, scmp_filter_ctx ctx)
{
	int fd = memfd_create("filter", MFD_CLOEXEC);

	if (fd < 0 || seccomp_export_bpf(ctx, fd) < 0)
		errx(1, "libseccomp does not give the filter out");
	size_t room = (PROGRAM_MAX - program->len) * sizeof(struct sock_filter);
	ssize_t n = pread(fd, program->insns + program->len, room, 0);
	if (n <= 0 || (size_t)n == room)
		errx(1, "the filter is too long");
	program->len += (size_t)n / sizeof(struct sock_filter);
	close(fd);
}

static void print_program(const char *name, const char *digest_name, uint32_t on_tripwire)
{
	static struct program program;
	unsigned char digest[SHA256_DIGEST_LENGTH];
	scmp_filter_ctx ctx = make_filter(on_tripwire);

	check_policy();
	program.len = 0;
	put_architecture(&program);
	put_holes(&program);
	put_filter(&program, ctx);
	seccomp_release(ctx);

	printf("\nconst size_t %s_len = %zu;\nconst struct sock_filter %s[] = {\n", name,
	       program.len, name);
	for (size_t i = 0; i < program.len; i++) {
		const struct sock_filter *f = &program.insns[i];

		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", f->code, f->jt, f->jf, f->k);
	}
	SHA256((unsigned char *)program.insns, program.len * sizeof(struct sock_filter), digest);
	printf("};\nconst char %s[65] = \"", digest_name);
	for (size_t i = 0; i < sizeof(digest); i++)
		printf("%02x", digest[i]);
	printf("\";\n");
}

static void print_filters(void)
{
	printf("/* Made by gen_seccomp from the policy; see tools/seccomp_policy.c. */\n"
	       "#include \"seccomp_filter.h\"\n");
	print_program("seccomp_filter", "seccomp_digest", SCMP_ACT_NOTIFY);
	print_program("seccomp_filter_plain", "seccomp_digest_plain", SCMP_ACT_ERRNO(EPERM));
}

static void print_names(void)
{
	printf("/* Made by gen_seccomp. */\n#include \"wire/syscalls.h\"\n\n#include <stddef.h>\n\n"
	       "static const char *const names[] = {\n");
	for (int nr = 0; nr < NUMBERS; nr++) {
		char *name = resolve_number(nr);

		if (name)
			printf("\t[%d] = \"%s\",\n", nr, name);
		free(name);
	}
	printf("};\n\nconst char *syscall_name(uint32_t nr)\n{\n"
	       "\treturn nr < sizeof(names) / sizeof(names[0]) ? names[nr] : NULL;\n}\n");
}

int main(int argc, char *argv[])
{
	arch = seccomp_arch_native();
	if (argc == 2 && strcmp(argv[1], "filter") == 0)
		print_filters();
	else if (argc == 2 && strcmp(argv[1], "names") == 0)
		print_names();
	else
		errx(2, "usage: gen_seccomp filter|names");
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
