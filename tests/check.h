/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h - a unit test is a function; it runs in a process of its own, so it
 * may crash, unshare or mount without touching the next one.  Speaks TAP. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SKIP 77

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

static struct test *tests, **tests_tail = &tests;

#define TEST(name)                                                                                 \
	static void test_##name(void);                                                             \
	__attribute__((constructor)) static void add_##name(void)                                  \
	{                                                                                          \
		static struct test t = { #name, test_##name, NULL };                               \
		*tests_tail = &t;                                                                  \
		tests_tail = &t.next;                                                              \
	}                                                                                          \
	static void test_##name(void)

#define END(status, ...)                                                                           \
	do {                                                                                       \
		printf("# %s:%d: ", __FILE__, __LINE__);                                           \
		printf(__VA_ARGS__);                                                               \
		printf("\n");                                                                      \
		fflush(stdout);                                                                    \
		_exit(status);                                                                     \
	} while (0)

#define SKIP(why) END(EXIT_SKIP, "%s", why)

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			END(EXIT_FAILURE, "%s", #cond);                                            \
	} while (0)

#define CHECK_INT(got, want)                                                                       \
	do {                                                                                       \
		long long g_ = (got), w_ = (want);                                                 \
		if (g_ != w_)                                                                      \
			END(EXIT_FAILURE, "%s: got %lld, want %lld", #got, g_, w_);                \
	} while (0)

#define CHECK_STR(got, want)                                                                       \
	do {                                                                                       \
		const char *g_ = (got), *w_ = (want);                                              \
		if (strcmp(g_, w_) != 0)                                                           \
			END(EXIT_FAILURE, "%s: got \"%s\", want \"%s\"", #got, g_, w_);            \
	} while (0)

int main(void)
{
	int n = 0, failed = 0;

	for (struct test *t = tests; t; t = t->next) {
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			t->run();
			exit(EXIT_SUCCESS);
		}

		int status = -1;
		waitpid(child, &status, 0);
		int skipped = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP;
		int passed = skipped || status == 0;
		failed += !passed;
		printf("%sok %d - %s%s\n", passed ? "" : "not ", ++n, t->name,
		       skipped ? " # SKIP" : "");
	}
	printf("1..%d\n", n);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
