/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's own code as PID 1 of a pid namespace, and a client at the other end of its stream. */
#include "agent_client.h"

#include "base/auto.h"
#include "base/clock.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define PLENTY (1u << 30)

static struct client client;

static void start(void)
{
	if (client_start(&client, NULL, NULL) < 0)
		SKIP("needs a pid namespace");
	const struct agent_message *hello = client_next(&client);
	CHECK_INT(hello->type, AGENT_HELLO);
}

static void run(uint32_t channel, uint32_t flags, uint32_t credit, const char *script)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	const char *envp[] = { "PATH=/usr/bin:/bin", "GIVEN=yes", NULL };

	client_exec(
		&client, channel,
		&(struct agent_exec){ .flags = flags, .argv = argv, .envp = envp, .cwd = "/tmp" });
	if (credit)
		client_credit(&client, channel, credit);
}

/* Runs it to the end and returns its exit value; what it said is in client.said. */
static int run_whole(uint32_t flags, const char *script)
{
	run(1, flags, PLENTY, script);
	return client_finish(&client, 1);
}

TEST(agent_says_hello_with_the_errno_of_the_canary)
{
	if (client_start(&client, NULL, NULL) < 0)
		SKIP("needs a pid namespace");
	const struct agent_message *hello = client_next(&client);
	CHECK_INT(hello->type, AGENT_HELLO);
	CHECK_INT(hello->hello.version, AGENT_WIRE_VERSION);
	CHECK_INT(hello->hello.canary_errno, ENOENT);
	CHECK_INT(hello->hello.pid, 1);
}

TEST(agent_runs_a_program_and_tells_output_and_exit)
{
	start();
	CHECK_INT(run_whole(0, "echo out; echo err >&2; exit 3"), 3);
	CHECK_STR(client.out, "out\n");
	CHECK_STR(client.err, "err\n");
	CHECK_INT(client.exit.signaled, 0);
	CHECK(client.exit.max_rss_kib > 0);

	CHECK_INT(run_whole(EXEC_MERGED, "echo out; echo err >&2; kill -9 $$"), 9);
	CHECK_STR(client.out, "out\nerr\n");
	CHECK_STR(client.err, "");
	CHECK_INT(client.exit.signaled, 1);
}

TEST(agent_gives_a_program_nothing_but_what_was_asked)
{
	start();
	CHECK_INT(run_whole(0, "env | grep -v -e ^_= -e ^PWD= -e ^SHLVL= -e ^OLDPWD= | sort; pwd"),
		  0);
	CHECK_STR(client.out, "GIVEN=yes\nPATH=/usr/bin:/bin\n/tmp\n");
	CHECK_INT(run_whole(0, "exec ls /proc/self/fd"), 0);
	CHECK_STR(client.out, "0\n1\n2\n3\n"); /* 3 is the directory that ls reads */
	CHECK_INT(run_whole(0, "read x || echo empty; umask"), 0);
	CHECK_STR(client.out, "empty\n0022\n");
	/* A session of its own, no signal ignored or blocked. */
	CHECK_INT(run_whole(0, "grep -E '^Sig(Blk|Ign)' /proc/self/status; "
			       "test $$ = $(cut -d' ' -f6 /proc/$$/stat)"),
		  0);
	CHECK_STR(client.out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static const struct err *fails_to_run(const char *name, const char *cwd)
{
	const char *argv[] = { name, NULL };
	const char *envp[] = { "PATH=/nonexistent:/usr/bin:/bin", NULL };

	client_exec(&client, 5, &(struct agent_exec){ .argv = argv, .envp = envp, .cwd = cwd });
	const struct agent_message *m = client_next(&client);
	CHECK_INT(m->type, AGENT_FAILED);
	CHECK_INT(m->channel, 5);
	return &m->failed;
}

TEST(agent_tells_not_found_from_not_executable)
{
	start();
	client_make_file("/tmp/plain", "x\n", 0644);
	client_make_file("/tmp/odd", "#!/no/such/interpreter\n", 0755);
	client_make_file("/tmp/noformat", "x", 0755);

	CHECK_INT(fails_to_run("no-such-program", "/")->kind, ERR_NOT_FOUND);
	CHECK_INT(fails_to_run("/no/such/program", "/")->kind, ERR_NOT_FOUND);
	CHECK_INT(fails_to_run("/tmp/odd", "/")->kind, ERR_NOT_FOUND);
	const struct err *err = fails_to_run("/tmp/plain", "/");
	CHECK_INT(err->kind, ERR_SYSTEM);
	CHECK_INT(err->errnum, EACCES);
	CHECK_STR(err->text, "start '/tmp/plain': Permission denied");
	CHECK_INT(fails_to_run("/tmp/noformat", "/")->errnum, ENOEXEC);
	CHECK_INT(fails_to_run("/tmp", "/")->errnum, EACCES);
	err = fails_to_run("true", "/no/such/directory");
	CHECK_INT(err->kind, ERR_INVALID);
	CHECK_INT(err->errnum, ENOENT);
	CHECK_INT(run_whole(0, "exit 0"), 0);
}

TEST(agent_reads_no_more_than_the_credit)
{
	start();
	run(1, 0, 1000, "exec yes");
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	size_t got = 0;
	while (got < 1000)
		got += client_next(&client)->data.len;
	CHECK_INT(got, 1000);
	CHECK(client_is_silent(&client, 200));
	client_credit(&client, 1, 5);
	CHECK_INT(client_next(&client)->data.len, 5);
	CHECK(client_is_silent(&client, 50));
	client_signal(&client, 1, SIGKILL, SCOPE_PROCESS);
	CHECK(client_is_silent(&client, 300)); /* what it wrote is still owed */
	client_credit(&client, 1, PLENTY);
	CHECK_INT(client_finish(&client, 1), SIGKILL);
}

TEST(agent_tells_the_exit_without_credit_when_nothing_is_left)
{
	start();
	run(1, 0, 0, "exit 4");
	int64_t then = clock_mono_ms();
	CHECK_INT(client_finish(&client, 1), 4);
	CHECK(clock_mono_ms() - then < 190);
	run(1, 0, 3, "echo ab; exit 5");
	then = clock_mono_ms();
	CHECK_INT(client_finish(&client, 1), 5);
	CHECK_STR(client.out, "ab\n");
	CHECK(clock_mono_ms() - then < 190);
}

TEST(agent_shares_the_credit_between_both_streams)
{
	start();
	run(1, 0, 6, "echo abc; echo def >&2; sleep 10");
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	size_t got = 0;
	while (got < 6)
		got += client_next(&client)->data.len;
	CHECK_INT(got, 6);
	CHECK(client_is_silent(&client, 50));
}

TEST(agent_does_not_wait_for_a_background_child)
{
	start();
	run(1, 0, PLENTY, "sleep 60 & echo started; head -c 60000 /dev/zero | tr '\\0' x; exit 6");
	int64_t then = clock_mono_ms();
	CHECK_INT(client_finish(&client, 1), 6);
	int64_t took = clock_mono_ms() - then;
	CHECK(took >= 150 && took <= 500);
	CHECK_INT(strlen(client.out), 60008);
	/* One that goes on writing does not hold the exit up either. */
	run(1, 0, PLENTY, "yes & exit 7");
	then = clock_mono_ms();
	CHECK_INT(client_finish(&client, 1), 7);
	CHECK(clock_mono_ms() - then <= 500);
}

TEST(agent_feeds_stdin_by_its_own_credit)
{
	static char text[300001];
	start();
	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = (char)('a' + i % 23);
	run(1, EXEC_STDIN, PLENTY, "cat");
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	client_feed(&client, AGENT_STDIN, 1, text, sizeof(text) - 1);
	client_send(&client, AGENT_STDIN_EOF, 1, NULL, 0);
	CHECK_INT(client_finish(&client, 1), 0);
	CHECK_INT(strlen(client.out), sizeof(text) - 1);
	CHECK(memcmp(client.out, text, sizeof(text) - 1) == 0);
}

TEST(agent_holds_stdin_back_when_the_program_does_not_read)
{
	static char text[AGENT_STDIN_WINDOW];
	start();
	memset(text, 'x', sizeof(text));
	run(1, EXEC_STDIN, PLENTY, "sleep 60");
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	client_send(&client, AGENT_STDIN, 1, text, sizeof(text)); /* fits the pipe */
	CHECK_INT(client_next(&client)->type, AGENT_CREDIT);
	client_send(&client, AGENT_STDIN, 1, text, sizeof(text)); /* stays with the agent */
	CHECK(client_is_silent(&client, 50));
	client_send(&client, AGENT_STDIN, 1, "x", 1);
	const struct agent_message *m = client_next(&client);
	CHECK_INT(m->type, AGENT_FAILED);
	CHECK_INT(m->channel, 0); /* the process lives */
	CHECK_INT(m->failed.kind, ERR_PROTOCOL);
	client_signal(&client, 1, SIGKILL, SCOPE_GROUP);
	CHECK_INT(client_finish(&client, 1), SIGKILL);
}

TEST(agent_lets_the_client_go_on_when_stdin_was_closed)
{
	static char text[200000];
	start();
	run(1, EXEC_STDIN, PLENTY, "exec <&-; sleep 0.3; exit 8");
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	client_feed(&client, AGENT_STDIN, 1, text, sizeof(text));
	CHECK_INT(client_finish(&client, 1), 8);
}

TEST(agent_runs_on_every_channel_at_once)
{
	start();
	for (uint32_t i = 1; i <= AGENT_CHANNELS; i++) {
		char script[64];
		snprintf(script, sizeof(script), "sleep 0.2; echo %u; exit %u", i, i);
		run(i, 0, PLENTY, script);
	}
	unsigned left = AGENT_CHANNELS;
	while (left > 0) {
		const struct agent_message *m = client_next(&client);
		CHECK(m->type != AGENT_FAILED);
		if (m->type == AGENT_STDOUT)
			CHECK_INT(atoi((const char *)m->data.data), m->channel);
		if (m->type != AGENT_EXIT)
			continue;
		CHECK_INT(m->exit.value, m->channel);
		left--;
	}
}

TEST(agent_opens_a_terminal)
{
	const char *argv[] = { "sh", "-c",
			       "test -t 0 && test -t 1 && test -t 2 && stty size && "
			       "(echo x > /dev/tty) && read a && echo got $a",
			       NULL };
	const char *envp[] = { "PATH=/usr/bin:/bin", NULL };

	start();
	client_exec(&client, 2,
		    &(struct agent_exec){ .flags = EXEC_PTY | EXEC_STDIN,
					  .argv = argv,
					  .envp = envp,
					  .rows = 24,
					  .columns = 81 });
	client_credit(&client, 2, PLENTY);
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	client_send(&client, AGENT_STDIN, 2, "typed\n", 6);
	CHECK_INT(client_finish(&client, 2), 0);
	CHECK(strstr(client.out, "24 81\r\n"));
	CHECK(strstr(client.out, "x\r\n"));
	CHECK(strstr(client.out, "got typed\r\n"));
}

TEST(agent_resizes_a_terminal_and_ends_its_input)
{
	const char *argv[] = { "sh", "-c", "trap 'stty size' WINCH; echo ready; cat; cat; exit 9",
			       NULL };
	const char *envp[] = { "PATH=/usr/bin:/bin", NULL };
	uint8_t size[8] = { 50, 0, 0, 0, 100 };

	start();
	client_exec(&client, 2,
		    &(struct agent_exec){ .flags = EXEC_PTY | EXEC_STDIN,
					  .argv = argv,
					  .envp = envp,
					  .rows = 1,
					  .columns = 1 });
	client_credit(&client, 2, PLENTY);
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	CHECK(strstr((const char *)client_next(&client)->data.data, "ready"));
	client_send(&client, AGENT_RESIZE, 2, size, 8);
	client_send(&client, AGENT_STDIN, 2, "\x04", 1); /* the first cat */
	client_send(&client, AGENT_STDIN_EOF, 2, NULL, 0);
	CHECK_INT(client_finish(&client, 2), 9);
	CHECK(strstr(client.out, "50 100"));
}

TEST(agent_reaps_orphans)
{
	start();
	CHECK_INT(run_whole(0, "i=0; while [ $i -lt 1000 ]; do (true & true); i=$((i+1)); done; "
			       "sleep 0.3; cat /proc/[0-9]*/stat | grep -c ') Z '"),
		  1); /* grep found none */
	CHECK_STR(client.out, "0\n");
}

TEST(agent_signals_a_process_or_its_group)
{
	start();
	run(1, 0, PLENTY, "trap 'exit 11' TERM; echo ready; sleep 60 & wait");
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	CHECK_INT(client_next(&client)->type, AGENT_STDOUT);
	client_signal(&client, 1, SIGTERM, SCOPE_PROCESS);
	CHECK_INT(client_finish(&client, 1), 11);

	run(1, 0, PLENTY, "trap 'exit 12' TERM; sleep 60 & echo ready; wait");
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	CHECK_INT(client_next(&client)->type, AGENT_STDOUT);
	usleep(100000); /* until sleep is a program of its own, without the shell's trap */
	int64_t then = clock_mono_ms();
	client_signal(&client, 1, SIGTERM, SCOPE_GROUP);
	CHECK_INT(client_finish(&client, 1), 12);
	CHECK(clock_mono_ms() - then < 190); /* sleep is gone too, so the pipe has ended */
}

TEST(agent_kills_everybody_and_says_when_they_are_gone)
{
	start();
	run(1, 0, PLENTY,
	    "i=0; while [ $i -lt 50 ]; do (trap '' TERM HUP; setsid sleep 60 &); "
	    "i=$((i+1)); done; echo ready; sleep 60");
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	CHECK_INT(client_next(&client)->type, AGENT_STDOUT);
	client_signal(&client, 0, SIGKILL, SCOPE_ALL);
	unsigned done = 0, ended = 0;
	while (!done || !ended) {
		const struct agent_message *m = client_next(&client);
		if (m->type == AGENT_DONE && m->channel == 0)
			done++;
		else if (m->type == AGENT_EXIT)
			ended++;
		else
			CHECK(m->type == AGENT_STDERR); /* "Killed" */
	}
	CHECK_INT(run_whole(0, "ls -d /proc/[0-9]* | grep -c ."), 0);
	CHECK(atoi(client.out) <= 4); /* agent, sh, ls, grep */
}

TEST(agent_ends_and_everybody_with_it_when_the_client_goes)
{
	start();
	run(1, 0, PLENTY, "setsid sleep 60 & sleep 60");
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	close(client.fd);
	CHECK_INT(client_wait(&client), 0);
}

TEST(agent_refuses_bad_frames_and_goes_on)
{
	const char *argv[] = { "true", NULL };

	start();
	client_send(&client, 9999, 1, NULL, 0);
	const struct agent_message *m = client_next(&client);
	CHECK(m->type == AGENT_FAILED && m->channel == 0);
	CHECK_INT(m->failed.kind, ERR_PROTOCOL);
	client_send(&client, AGENT_EXEC, 7, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	m = client_next(&client);
	CHECK(m->type == AGENT_FAILED && m->channel == 7);
	client_send(&client, AGENT_EXEC, AGENT_CHANNELS + 1, NULL, 0);
	m = client_next(&client);
	CHECK(m->type == AGENT_FAILED && m->channel == 0);
	client_send(&client, AGENT_SIGNAL, 0, "\x09\0\0\0\x07\0\0\0", 8);
	m = client_next(&client);
	CHECK(m->type == AGENT_FAILED && m->channel == 0);

	run(3, 0, PLENTY, "sleep 60");
	CHECK_INT(client_next(&client)->type, AGENT_STARTED);
	client_exec(&client, 3, &(struct agent_exec){ .argv = argv });
	m = client_next(&client);
	CHECK(m->type == AGENT_FAILED && m->channel == 0);
	CHECK_INT(m->failed.kind, ERR_CONFLICT);
	client_send(&client, AGENT_PING, 0, NULL, 0);
	CHECK_INT(client_next(&client)->type, AGENT_PONG);
}

TEST(agent_drops_frames_for_a_channel_that_has_ended)
{
	start();
	client_send(&client, AGENT_STDIN, 1, "late", 4);
	client_send(&client, AGENT_STDIN_EOF, 1, NULL, 0);
	client_send(&client, AGENT_DATA, 1, "late", 4);
	client_credit(&client, 1, 100);
	client_signal(&client, 1, SIGTERM, SCOPE_GROUP);
	client_send(&client, AGENT_CANCEL, 1, NULL, 0);
	client_send(&client, AGENT_PING, 0, NULL, 0);
	CHECK_INT(client_next(&client)->type, AGENT_PONG);
}

TEST(agent_exits_when_the_stream_is_no_stream_of_frames)
{
	uint8_t header[FRAME_HEADER];

	start();
	memset(header, 0xff, sizeof(header));
	CHECK_INT(write(client.fd, header, sizeof(header)), sizeof(header));
	CHECK_INT(client_wait(&client), EXIT_FAILURE);
}

TEST(agent_waits_for_a_client_that_does_not_read)
{
	start();
	run(1, 0, PLENTY, "exec head -c 3000000 /dev/zero");
	usleep(300000);
	/* Requests are not lost, they wait. */
	for (int i = 0; i < 100; i++)
		client_send(&client, AGENT_PING, 0, NULL, 0);
	usleep(100000);
	size_t got = 0;
	unsigned pongs = 0;
	for (bool ended = false; !ended || pongs < 100;) {
		const struct agent_message *m = client_next(&client);
		if (m->type == AGENT_STDOUT)
			got += m->data.len;
		pongs += m->type == AGENT_PONG;
		ended |= m->type == AGENT_EXIT;
	}
	CHECK_INT(got, 3000000);
	CHECK_INT(pongs, 100);
}

TEST(agent_sleeps_while_it_has_to_wait)
{
	static uint8_t pings[1000][FRAME_HEADER];
	struct rusage usage;

	start();
	run(2, 0, 0, "echo owed"); /* has ended, and nobody takes what it said */
	run(3, EXEC_STDIN, 0, "exec sleep 60");
	client_feed(&client, AGENT_STDIN, 3, client.out, AGENT_STDIN_WINDOW); /* fills the pipe */
	run(1, 0, PLENTY, "exec yes"); /* fills the stream: we do not read */
	usleep(200000);
	for (size_t i = 0; i < ARRAY_LEN(pings); i++)
		frame_header(pings[i], AGENT_PING, 0, 0);
	CHECK_INT(fd_write_all(client.fd, pings, sizeof(pings)), 0); /* no room for the answers */
	usleep(1000000);
	close(client.fd);
	CHECK_INT(client_wait(&client), 0);
	CHECK_INT(getrusage(RUSAGE_CHILDREN, &usage), 0);
	CHECK(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec == 0);
	CHECK(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec < 200000);
}
