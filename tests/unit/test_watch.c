/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include "mounts.h"
#include "warden_fixture.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define MEMORY (32u << 20)

static int proc, ready[2];
static pid_t agent;

static void wait_for_end(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK_INT(write(ready[1], "r", 1), 1);
	for (;;)
		pause();
}

static void use_memory(void)
{
	char *memory =
		mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	memset(memory, 1, MEMORY);
	wait_for_end();
}

static void use_cpu(void)
{
	struct rusage usage;

	do {
		for (volatile int i = 0; i < 1000000; i++)
			;
		getrusage(RUSAGE_SELF, &usage);
	} while (usage.ru_utime.tv_sec == 0 && usage.ru_utime.tv_usec < 200000);
	wait_for_end();
}

static pid_t start(void (*run)(void))
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		run();
		_exit(0);
	}
	return pid;
}

static void grandchild(void)
{
	/* A name that could fool who reads /proc/PID/stat up to the first ')'. */
	(void)prctl(PR_SET_NAME, "x) R 1 1 (", 0, 0, 0);
	start(use_cpu);
	wait_for_end();
}

static void be_agent(void)
{
	start(use_memory);
	start(grandchild);
	wait_for_end();
}

static void start_tree(void)
{
	char byte;

	CHECK_INT(pipe(ready), 0);
	proc = open("/proc", O_RDONLY | O_DIRECTORY);
	agent = start(be_agent);
	for (int i = 0; i < 4; i++)
		CHECK_INT(read(ready[0], &byte, 1), 1);
}

static void end_tree(void)
{
	CHECK_INT(kill(agent, SIGKILL), 0);
	CHECK_INT(waitpid(agent, NULL, 0), agent);
}

TEST(watch_tree_counts_what_is_below_the_agent)
{
	struct tree_usage usage = { 0 };

	start_tree();
	pid_t other = start(use_memory); /* not in the tree */
	char byte;
	CHECK_INT(read(ready[0], &byte, 1), 1);
	watch_tree(proc, agent, &usage);
	CHECK_INT(usage.pids, 3);
	CHECK(usage.memory_bytes >= MEMORY && usage.memory_bytes < 3 * MEMORY);
	CHECK(usage.cpu_us >= 150000 && usage.cpu_us < 60000000);
	CHECK_INT(usage.peak_pids, 3);
	CHECK_INT(usage.peak_memory_bytes, usage.memory_bytes);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	end_tree();
}

TEST(watch_tree_remembers_the_peaks)
{
	struct tree_usage usage = { 0 };

	start_tree();
	watch_tree(proc, agent, &usage);
	uint64_t peak = usage.peak_memory_bytes, cpu = usage.cpu_us;
	watch_kill_code(proc, agent);
	watch_tree(proc, agent, &usage);
	CHECK_INT(usage.peak_memory_bytes, peak);
	CHECK_INT(usage.peak_pids, 3);
	CHECK(usage.cpu_us >= cpu);
	end_tree();
	watch_tree(proc, agent, &usage);
	CHECK_INT(usage.pids, 0);
	CHECK_INT(usage.memory_bytes, 0);
}

TEST(watch_kill_code_spares_the_agent)
{
	struct tree_usage usage = { 0 };

	start_tree();
	watch_kill_code(proc, agent);
	for (int tries = 0; tries < 200; tries++) {
		usage.memory_bytes = 0;
		watch_tree(proc, agent, &usage);
		if (usage.memory_bytes == 0)
			break;
		usleep(5000);
	}
	CHECK_INT(usage.memory_bytes, 0);
	CHECK_INT(kill(agent, 0), 0);
	CHECK_INT(waitpid(agent, NULL, WNOHANG), 0);
	end_tree();
}

static int go[2], said[2];

static void write_when_told(void)
{
	char byte;
	int file = openat(AT_FDCWD, tmp_path, O_TMPFILE | O_RDWR, 0600);

	signal(SIGXFSZ, SIG_IGN);
	CHECK_INT(write(file, "x", 1), 1);
	CHECK_INT(write(ready[1], "r", 1), 1);
	CHECK_INT(read(go[0], &byte, 1), 1);
	byte = pwrite(file, "y", 1, 1) == 1 ? 'w' : errno == EFBIG ? 'f' : '?';
	CHECK_INT(write(said[1], &byte, 1), 1);
	wait_for_end();
}

static void be_writers_agent(void)
{
	start(write_when_told);
	wait_for_end();
}

TEST(watch_stop_writes_lets_nobody_write_another_byte)
{
	char byte;

	close(tmp_make());
	CHECK(pipe(ready) == 0 && pipe(go) == 0 && pipe(said) == 0);
	proc = open("/proc", O_RDONLY | O_DIRECTORY);
	agent = start(be_writers_agent);
	for (int i = 0; i < 2; i++)
		CHECK_INT(read(ready[0], &byte, 1), 1);
	watch_stop_writes(proc, agent);
	CHECK_INT(write(go[1], "g", 1), 1);
	CHECK_INT(read(said[0], &byte, 1), 1);
	CHECK_INT(byte, 'f');
	struct rlimit limit;
	CHECK_INT(prlimit(agent, RLIMIT_FSIZE, NULL, &limit), 0);
	CHECK(limit.rlim_cur != 0); /* the agent still answers */
	end_tree();
	tmp_finish();
}

TEST(watch_disk_counts_bytes_and_names_and_follows_nothing)
{
	static char data[65536];
	struct tree_usage usage = { 0 };
	int dir = tmp_make();

	CHECK_INT(path_make_dirs(dir, "a/b/c", 0755), 0);
	int fd = openat(dir, "a/b/f", O_WRONLY | O_CREAT, 0600);
	CHECK_INT(write(fd, data, sizeof(data)), (ssize_t)sizeof(data));
	CHECK_INT(ftruncate(fd, 1 << 30), 0); /* a hole costs nothing */
	CHECK_INT(fsync(fd), 0);
	CHECK_INT(symlinkat("/usr", dir, "a/link"), 0);
	watch_disk(dir, &usage);
	CHECK_INT(usage.disk_files, 5);
	CHECK(usage.disk_bytes >= sizeof(data) && usage.disk_bytes < sizeof(data) + 65536);
	close(fd);
	tmp_finish();
}

static void count_around_a_mount(void)
{
	struct tree_usage usage = { 0 };

	enter_namespaces(0);
	int dir = open(tmp_path, O_RDONLY | O_DIRECTORY);
	int mount = mounts_new("tmpfs", NULL, 0, &err);
	CHECK_INT(mkdirat(dir, "mnt", 0755), 0);
	CHECK_INT(mounts_attach(mount, dir, "mnt", &err), 0);
	make_file(mount, "f", "x", 0600);
	watch_disk(dir, &usage);
	CHECK_INT(usage.disk_files, 1);
}

TEST(watch_disk_crosses_no_mount)
{
	close(tmp_make());
	in_child(count_around_a_mount);
	tmp_finish();
}

static int go_down(int at, int levels)
{
	for (int i = 0; i < levels; i++) {
		CHECK_INT(mkdirat(at, "d", 0755), 0);
		int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
		CHECK(next >= 0);
		close(at);
		at = next;
	}
	return at;
}

/* What lies deep must not be free. */
TEST(watch_disk_counts_a_deep_tree_whole)
{
	struct rlimit few = { 512, 512 };
	struct tree_usage usage = { 0 };
	int dir = tmp_make();
	int at = go_down(openat(dir, ".", O_RDONLY | O_DIRECTORY), 1000);

	make_file(at, "f", "x", 0600);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &few), 0);
	watch_disk(dir, &usage);
	CHECK_INT(usage.disk_files, 1001);
	close(at);
	tmp_finish();
}

TEST(watch_disk_takes_a_tree_that_it_cannot_count_for_full)
{
	struct rlimit few = { 512, 512 };
	struct tree_usage usage = { 0 };
	char name[16];
	int dir = tmp_make();
	int at = go_down(openat(dir, ".", O_RDONLY | O_DIRECTORY), 128);

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		CHECK_INT(mkdirat(at, name, 0755), 0);
	}
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &few), 0);
	watch_disk(dir, &usage);
	CHECK(usage.disk_files >= 1128);
	at = go_down(at, 1);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		CHECK_INT(mkdirat(at, name, 0755), 0);
	}
	watch_disk(dir, &usage);
	CHECK(usage.disk_files > 1000000);
	close(at);
	tmp_finish();
}
