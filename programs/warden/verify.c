/* SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

#include "ids.h"
#include "plan.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

struct look {
	int proc_fd; /* of U */
	int fd;      /* proc_fd/<pid> */
	const char *host_net;
	const struct ids *ids;
	const struct plan *plan;
	const struct inside *inside;
};

static int fail(unsigned layer, const char *what, const char *got, struct err *err)
{
	return err_make(err, ERR_SETUP, "layer '%s' does not hold: %s is '%.80s'",
			layer_name(layer), what, got);
}

static int check_namespace(const struct look *look, unsigned layer, const char *name,
			   struct err *err)
{
	char path[32], own[64] = "", theirs[64] = "";

	snprintf(path, sizeof(path), "self/ns/%s", name);
	if (readlinkat(look->proc_fd, path, own, sizeof(own) - 1) < 0 ||
	    readlinkat(look->fd, path + 5, theirs, sizeof(theirs) - 1) < 0)
		return err_errno(err, errno, "look at the %s namespace", name);
	if (layer == LAYER_NET_NS)
		snprintf(own, sizeof(own), "%s", look->host_net);
	return strcmp(own, theirs) == 0 ? fail(layer, "namespace", theirs, err) : 0;
}

/* The value of "Key:" in /proc/PID/status, blanks in front removed. */
static const char *status_value(const char *status, const char *key, char *ret_value, size_t size)
{
	char line[32];

	snprintf(line, sizeof(line), "\n%s:", key);
	const char *at = strstr(status, line);
	if (!at)
		return "absent";
	at += strlen(line);
	at += strspn(at, " \t");
	snprintf(ret_value, size, "%.*s", (int)strcspn(at, "\n"), at);
	return ret_value;
}

struct status_rule {
	unsigned layer;
	const char *key, *want;
};

static int check_rules(const char *status, const struct status_rule *rules, size_t n,
		       struct err *err)
{
	char value[256];

	for (size_t i = 0; i < n; i++) {
		const char *got = status_value(status, rules[i].key, value, sizeof(value));
		size_t len = strlen(got);
		while (len > 0 && got[len - 1] == ' ')
			len--;
		if (len != strlen(rules[i].want) || memcmp(got, rules[i].want, len) != 0)
			return fail(rules[i].layer, rules[i].key, got, err);
	}
	return 0;
}

static int check_status(const struct look *look, struct err *err)
{
	char status[8192], ids[64];
	uid_t id = ids_outer_id(look->ids, look->plan->slot, look->plan->own_user);
	static const char none[] = "0000000000000000";
	const struct status_rule always[] = {
		{ LAYER_UIDS, "Uid", ids },
		{ LAYER_UIDS, "Gid", ids },
		{ LAYER_NO_NEW_PRIVS, "NoNewPrivs", "1" },
	};
	const struct status_rule caps[] = {
		{ LAYER_CAPS, "CapInh", none }, { LAYER_CAPS, "CapPrm", none },
		{ LAYER_CAPS, "CapEff", none }, { LAYER_CAPS, "CapBnd", none },
		{ LAYER_CAPS, "CapAmb", none },
	};
	const struct status_rule seccomp[] = { { LAYER_SECCOMP, "Seccomp", "2" } };
	const struct status_rule groups[] = { { LAYER_UIDS, "Groups", "" } };

	snprintf(ids, sizeof(ids), "%u\t%u\t%u\t%u", id, id, id, id);
	if (fd_read_text_at(look->fd, "status", status, sizeof(status)) < 0)
		return err_make(err, ERR_SETUP, "the agent's status cannot be read");
	int r = check_rules(status, always, ARRAY_LEN(always), err);
	if (r == 0 && !(look->plan->without & WITHOUT_CAPS))
		r = check_rules(status, caps, ARRAY_LEN(caps), err);
	if (r == 0 && !(look->plan->without & WITHOUT_SECCOMP))
		r = check_rules(status, seccomp, ARRAY_LEN(seccomp), err);
	if (r == 0 && look->inside->may_set_groups)
		r = check_rules(status, groups, ARRAY_LEN(groups), err);
	return r;
}

static int check_maps(const struct look *look, struct err *err)
{
	char want[128], got[512];

	ids_expect_map(look->ids, look->plan->slot, look->plan->own_user, want, sizeof(want));
	for (int i = 0; i < 2; i++) {
		if (fd_read_text_at(look->fd, i ? "gid_map" : "uid_map", got, sizeof(got)) < 0)
			return err_make(err, ERR_SETUP, "the sandbox's maps cannot be read");
		if (strcmp(got, want) != 0)
			return fail(LAYER_USER_NS, "map", got, err);
	}
	return 0;
}

static const struct {
	int resource;
	const char *name;
} limit_names[] = {
	{ RLIMIT_CORE, "Max core file size" },    { RLIMIT_NOFILE, "Max open files" },
	{ RLIMIT_NPROC, "Max processes" },        { RLIMIT_FSIZE, "Max file size" },
	{ RLIMIT_DATA, "Max data size" },         { RLIMIT_MEMLOCK, "Max locked memory" },
	{ RLIMIT_MSGQUEUE, "Max msgqueue size" }, { RLIMIT_SIGPENDING, "Max pending signals" },
};

static int check_rlimits(const struct look *look, struct err *err)
{
	char text[4096];
	uint64_t soft, hard;

	if (fd_read_text_at(look->fd, "limits", text, sizeof(text)) < 0)
		return err_make(err, ERR_SETUP, "the sandbox's limits cannot be read");
	for (int i = 0; i < look->inside->n_rlimits; i++) {
		const struct rlimit_want *want = &look->inside->rlimits[i];
		for (size_t k = 0; k < ARRAY_LEN(limit_names); k++) {
			if (limit_names[k].resource != want->resource)
				continue;
			const char *at = strstr(text, limit_names[k].name);
			if (!at || sscanf(at + strlen(limit_names[k].name), "%" SCNu64 " %" SCNu64,
					  &soft, &hard) != 2)
				return fail(LAYER_RLIMITS, limit_names[k].name, "unlimited", err);
			if (soft > want->value || hard > want->value)
				return fail(LAYER_RLIMITS, limit_names[k].name, "too high", err);
		}
	}
	return 0;
}

/* "\040" and its like, in place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at;) {
		if (at[0] == '\\' && at[1] && at[2] && at[3]) {
			*to++ = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 4;
		} else {
			*to++ = *at++;
		}
	}
	*to = '\0';
}

static int check_mount(char *line, struct jail_mount *expected, unsigned n, bool bare,
		       struct err *err)
{
	char *save = NULL, *point = NULL, *options = NULL;
	int field = 0;

	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (++field == 5)
			point = word;
		if (field == 6)
			options = word;
		if (field > 6 &&
		    (strncmp(word, "shared:", 7) == 0 || strncmp(word, "master:", 7) == 0))
			return fail(LAYER_ROOT, "propagation", word, err);
		if (strcmp(word, "-") == 0)
			break;
	}
	if (!point || !options)
		return fail(LAYER_ROOT, "mountinfo", "unreadable", err);
	unescape(point);
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(expected[i].point, point) != 0)
			continue;
		bool read_only = strncmp(options, "ro", 2) == 0;
		if ((expected[i].read_only && !read_only && !bare) || !strstr(options, "nosuid") ||
		    (!expected[i].devices && !strstr(options, "nodev")))
			return fail(LAYER_ROOT, point, options, err);
		expected[i].point[0] = '\0'; /* each exactly once */
		return 0;
	}
	return fail(LAYER_ROOT, "an unknown mount", point, err);
}

static int check_mounts(const struct look *look, struct err *err)
{
	static struct jail_mount expected[JAIL_MOUNTS_MAX];
	static char text[131072];
	unsigned n = jailroot_expect(&look->inside->root, expected);
	char *save = NULL;

	if (fd_read_text_at(look->fd, "mountinfo", text, sizeof(text)) < 0)
		return err_make(err, ERR_SETUP, "the sandbox's mounts cannot be read");
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		int r = check_mount(line, expected, n, look->inside->root.bare, err);
		if (r < 0)
			return r;
	}
	for (unsigned i = 0; i < n; i++)
		if (expected[i].point[0])
			return fail(LAYER_ROOT, "a missing mount", expected[i].point, err);
	return 0;
}

/* 0 to 2, the stream, the handover socket, the listener, and the cgroup's; and two that the agent
 * may have opened itself by now, for its signals and for the canary. */
static int check_descriptors(const struct look *look, struct err *err)
{
	int fd = openat(look->fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int max = AGENT_FD_TASKS + (int)look->inside->n_tasks + 2;

	if (!dir)
		return err_errno(err, errno, "list the agent's descriptors");
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		if (entry->d_name[0] != '.' && atoi(entry->d_name) >= max)
			return fail(LAYER_DESCRIPTORS, "an open descriptor", entry->d_name, err);
	return 0;
}

int verify_sandbox(int proc_fd, pid_t pid, const char *host_net, const struct ids *ids,
		   const struct plan *plan, const struct inside *inside, uint32_t *ret_held,
		   uint32_t *ret_absent, struct err *err)
{
	static const struct {
		unsigned layer;
		const char *name;
	} namespaces[] = {
		{ LAYER_USER_NS, "user" },     { LAYER_PID_NS, "pid" }, { LAYER_MOUNT_NS, "mnt" },
		{ LAYER_NET_NS, "net" },       { LAYER_IPC_NS, "ipc" }, { LAYER_UTS_NS, "uts" },
		{ LAYER_CGROUP_NS, "cgroup" },
	};
	struct look look = {
		.proc_fd = proc_fd, .host_net = host_net, .ids = ids, .plan = plan, .inside = inside
	};
	struct statfs fs;
	char path[16];
	bool has_userns = !(plan->without & WITHOUT_USERNS);
	int r = 0;

	snprintf(path, sizeof(path), "%d", pid);
	auto_close int fd = openat(proc_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return err_make(err, ERR_SETUP, "the agent is not in the launcher's /proc");
	look.fd = fd;
	for (size_t i = has_userns ? 0 : 1; r == 0 && i < ARRAY_LEN(namespaces); i++)
		r = check_namespace(&look, namespaces[i].layer, namespaces[i].name, err);
	if (r == 0)
		r = check_status(&look, err);
	if (r == 0 && has_userns)
		r = check_maps(&look, err);
	if (r == 0 && !(plan->without & WITHOUT_RLIMITS))
		r = check_rlimits(&look, err);
	if (r == 0)
		r = check_mounts(&look, err);
	if (r == 0)
		r = check_descriptors(&look, err);
	if (r < 0)
		return r;

	uint32_t absent = 0, all = (1u << LAYERS_) - 1;
	if (!has_userns)
		absent |= 1u << LAYER_USER_NS;
	if (plan->without & WITHOUT_CAPS)
		absent |= 1u << LAYER_CAPS;
	if (plan->without & WITHOUT_SECCOMP)
		absent |= 1u << LAYER_SECCOMP;
	if (plan->without & WITHOUT_RLIMITS)
		absent |= 1u << LAYER_RLIMITS;
	if (plan->without & WITHOUT_MOUNTS)
		absent |= 1u << LAYER_ROOT;
	if (!inside->landlock_abi || (plan->without & WITHOUT_LANDLOCK))
		absent |= 1u << LAYER_LANDLOCK;
	if (!inside->may_set_groups || ids->mode == IDS_SINGLE)
		absent |= 1u << LAYER_UIDS; /* shares the user's own uid and groups */
	if (inside->n_tasks == 0)
		absent |= 1u << LAYER_CGROUP;
	*ret_absent = absent;
	*ret_held = all & ~absent;
	return 0;
}
