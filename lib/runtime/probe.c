/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/probe.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/settings.h"
#include "runtime/version.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define MARK "cay: " /* before each line of an answer */

/* Old versions have to be able to say how old they are, so this is Python 2 as well as 3.  With
 * -S no .pth file and no sitecustomize of the host runs. */
static const char python_question[] =
	"import os, sys\n"
	"def say(key, value):\n"
	"    sys.stdout.write('cay: %s = %s\\n' % (key, value))\n"
	"v = sys.version_info\n"
	"say('version', '%d.%d.%d' % tuple(v[:3]))\n"
	"if v >= (3, 8):\n"
	"    import sysconfig\n"
	"    free = sysconfig.get_config_var('Py_GIL_DISABLED')\n"
	"    say('implementation', sys.implementation.name + ('-free-threaded' if free else ''))\n"
	"    base = sys.base_prefix\n"
	"    prefix = os.path.realpath(base)\n"
	"    exe = os.path.realpath(getattr(sys, '_base_executable', None) or sys.executable)\n"
	"    if not exe.startswith(prefix + '/'):\n"
	"        exe = os.path.realpath('%s/bin/python%d.%d' % ((prefix,) + tuple(v[:2])))\n"
	"    say('exe', exe)\n"
	"    say('prefix', prefix)\n"
	"    site = sysconfig.get_path('purelib', vars={'base': base, 'platbase': base})\n"
	"    say('site', os.path.realpath(site))\n"
	"    say('shared', 'yes' if sysconfig.get_config_var('Py_ENABLE_SHARED') else 'no')\n"
	"    used = [line.split(None, 5)[5].strip() for line in open('/proc/self/maps')\n"
	"            if len(line.split(None, 5)) == 6]\n"
	"    used.append(os.path.realpath(os.__file__))\n"
	"    inside = (prefix + '/', '/usr/', '/lib', '/bin/', '[')\n"
	"    out = [name for name in used if name[0] == '/' and not name.startswith(inside)]\n"
	"    if out:\n"
	"        say('outside', out[0])\n";

static const char node_question[] =
	"const fs = require('fs'), path = require('path');\n"
	"const say = (key, value) => console.log('cay: ' + key + ' = ' + value);\n"
	"const exe = fs.realpathSync(process.execPath);\n"
	"const prefix = path.dirname(path.dirname(exe));\n"
	"say('version', process.version.replace(/^v/, '').replace(/[^0-9.].*/, ''));\n"
	"say('exe', exe);\n"
	"say('prefix', prefix);\n"
	"const used = fs.readFileSync('/proc/self/maps', 'utf8').split('\\n')\n"
	"  .map(line => line.replace(/^(\\S+\\s+){5}/, '')).filter(name => name[0] === '/');\n"
	"const inside = [prefix + '/', '/usr/', '/lib', '/bin/'];\n"
	"const out = used.filter(name => !inside.some(start => name.startsWith(start)));\n"
	"if (out.length) say('outside', out[0]);\n";

static const struct question {
	const char *kind;
	const char *args[4];
} questions[] = {
	{ "python", { "-ESs", "-c", python_question } },
	{ "node", { "--no-warnings", "-e", node_question } },
	{ "version", { "--version" } },
};

static const struct setting answers[] = {
	{ "version", SETTING_TEXT, SETTING_FIELD(struct probe, version), 0, 0, NULL },
	{ "implementation", SETTING_TEXT, SETTING_FIELD(struct probe, implementation), 0, 0, NULL },
	{ "exe", SETTING_TEXT, SETTING_FIELD(struct probe, exe), 0, 0, NULL },
	{ "prefix", SETTING_TEXT, SETTING_FIELD(struct probe, prefix), 0, 0, NULL },
	{ "site", SETTING_TEXT, SETTING_FIELD(struct probe, site), 0, 0, NULL },
	{ "outside", SETTING_TEXT, SETTING_FIELD(struct probe, outside), 0, 0, NULL },
	{ "shared", SETTING_FLAG, SETTING_FIELD(struct probe, shared), 0, 0, NULL },
	{ 0 },
};

/* Keeps the lines that are ours, without their mark: shims and start-up code print, too. */
static size_t keep_marked(const char *text, size_t len, char *ret_text)
{
	size_t kept = 0;

	while (len > 0) {
		const char *newline = memchr(text, '\n', len);
		size_t line = newline ? (size_t)(newline - text) + 1 : len;
		if (line > strlen(MARK) && memcmp(text, MARK, strlen(MARK)) == 0) {
			memcpy(ret_text + kept, text + strlen(MARK), line - strlen(MARK));
			kept += line - strlen(MARK);
		}
		text += line;
		len -= line;
	}
	return kept;
}

int probe_parse(const char *text, size_t len, struct probe *ret_probe, struct err *err)
{
	struct probe probe = { 0 };
	const char *const paths[] = { probe.exe, probe.prefix, probe.site, probe.outside };
	char ours[PROBE_OUTPUT_MAX];

	if (len > sizeof(ours))
		return err_make(err, ERR_LIMIT, "it says more than %zu bytes", sizeof(ours));
	int r = settings_parse(ours, keep_marked(text, len, ours), answers, &probe, err);
	if (r < 0)
		return err_while(err, "read its answer");
	if (!version_is_valid(probe.version))
		return err_make(err, ERR_INVALID, "it does not tell a version");
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (paths[i][0] && (paths[i][0] != '/' || strstr(paths[i], "/../")))
			return err_make(err, ERR_INVALID, "it tells a path that is not absolute");
	*ret_probe = probe;
	return 0;
}

/* The first number with a dot in it: "GNU bash, version 5.2.15(1)-release". */
static int parse_banner(const char *text, struct probe *ret_probe, struct err *err)
{
	for (const char *c = text; (c = strpbrk(c, "0123456789")); c += strspn(c, "0123456789.")) {
		size_t len = strspn(c, "0123456789.");
		if (!memchr(c, '.', len) || len >= sizeof(ret_probe->version))
			continue;
		struct probe probe = { 0 };
		memcpy(probe.version, c, len);
		if (!version_is_valid(probe.version))
			continue;
		*ret_probe = probe;
		return 0;
	}
	return err_make(err, ERR_INVALID, "it does not tell a version");
}

/* Shims need to find their manager and their home; nothing else of the environment is passed. */
static void fill_environment(char *storage, size_t size, char *ret_env[static 16])
{
	static const char *const kept[] = { "PATH",          "HOME",       "PYENV_ROOT",
					    "ASDF_DATA_DIR", "ASDF_DIR",   "NVM_DIR",
					    "FNM_DIR",       "VOLTA_HOME", "MISE_DATA_DIR" };
	size_t used = 0, count = 0;

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		const char *value = getenv(kept[i]);
		int len =
			value ? snprintf(storage + used, size - used, "%s=%s", kept[i], value) : -1;
		if (len < 0 || (size_t)len >= size - used)
			continue;
		ret_env[count++] = storage + used;
		used += (size_t)len + 1;
	}
	ret_env[count++] = "LC_ALL=C.UTF-8";
	ret_env[count] = NULL;
}

static int start(const char *exe, const struct question *question, int out, pid_t *ret_pid)
{
	char storage[16384];
	char *env[16];
	char *argv[6] = { (char *)exe };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;

	for (size_t i = 0; i < ARRAY_LEN(question->args) && question->args[i]; i++)
		argv[i + 1] = (char *)question->args[i];
	fill_environment(storage, sizeof(storage), env);
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, out, 2);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	posix_spawn_file_actions_addchdir_np(&actions, "/");
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	int r = posix_spawn(ret_pid, exe, &actions, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* Reads until the end, the maximum or the deadline. */
static ssize_t read_answer(int fd, char *text, size_t size, int64_t deadline_ms)
{
	size_t have = 0;

	while (have < size - 1) {
		int64_t left = deadline_ms - clock_mono_ms();
		int r = left > 0 ? fd_wait_readable(fd, (int)left) : 0;
		if (r <= 0)
			return r < 0 ? r : -ETIMEDOUT;
		ssize_t n = read(fd, text + have, size - 1 - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	text[have] = '\0';
	return (ssize_t)have;
}

/* It closed its output or was too slow; either way it has until the deadline to be gone.  It is
 * waited for last, so that its process group's number is still ours when it is killed. */
static int reap(pid_t pid, int64_t deadline_ms)
{
	siginfo_t info = { 0 };
	int status = 0;

	while (info.si_pid != pid && clock_mono_ms() < deadline_ms) {
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
			break;
		if (info.si_pid != pid)
			usleep(500);
	}
	(void)kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (info.si_pid != pid)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Its last line, for a sentence. */
static int refuse(char *text, int code, struct err *err)
{
	char *end = text + strlen(text);

	while (end > text && (end[-1] == '\n' || end[-1] == ' '))
		*--end = '\0';
	const char *line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = c < line ? *c : '?';
	return err_make(err, ERR_UNSUPPORTED, "it ended with %d: %.120s", code, line);
}

static const struct question *find_question(const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		if (strcmp(questions[i].kind, kind) == 0)
			return &questions[i];
	return NULL;
}

int probe_ask(const char *kind, const char *exe, struct probe *ret_probe, struct err *err)
{
	const struct question *question = find_question(kind);
	int64_t deadline_ms = clock_mono_ms() + PROBE_TIMEOUT_MS;
	char text[PROBE_OUTPUT_MAX];
	int pipe_fds[2];
	pid_t pid;

	if (!question)
		return err_make(err, ERR_INVALID, "there is no probe '%s'", kind);
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	auto_close int in = pipe_fds[0];
	auto_close int out = pipe_fds[1];
	int r = start(exe, question, out, &pid);
	if (r < 0)
		return err_errno(err, -r, "start it");
	drop_fd(&out);

	ssize_t len = read_answer(in, text, sizeof(text), deadline_ms);
	drop_fd(&in);
	int code = reap(pid, deadline_ms);
	if (len == -ETIMEDOUT || code == -ETIMEDOUT)
		return err_make(err, ERR_TIMEOUT, "it gave no answer within %d s",
				PROBE_TIMEOUT_MS / 1000);
	if (len < 0)
		return err_errno(err, (int)-len, "read its answer");
	if (code != 0)
		return refuse(text, code, err);
	if (question->args[1] == NULL)
		return parse_banner(text, ret_probe, err);
	return probe_parse(text, (size_t)len, ret_probe, err);
}
