/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_cgroup.c - by whom limits of memory, processors and processes can be held. */
#include "doctor.h"

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TABLE_MAX (1 << 20) /* a host with ten thousand mounts */

static const struct {
	const char *name, *v1_name;
} controllers[CG_CONTROLLERS_] = {
	[CG_MEMORY] = { "memory", "memory" },    [CG_CPU] = { "cpu", "cpu" },
	[CG_PIDS] = { "pids", "pids" },          [CG_IO] = { "io", "blkio" },
	[CG_FREEZER] = { "freezer", "freezer" },
};

/* Is `word` one of the words that are parted by the characters of `parts`? */
static bool has_word(const char *list, const char *parts, const char *word)
{
	for (const char *at = list; *at;) {
		size_t len = strcspn(at, parts);
		if (len == strlen(word) && memcmp(at, word, len) == 0)
			return true;
		at += len;
		at += *at != '\0';
	}
	return false;
}

/* A line "4:memory:/user.slice"; v2 is "0::/user.slice" and has no names. */
static bool is_line_of(const char *line, const char *controller, char ret_path[static 512])
{
	char names[128];

	if (!*controller)
		return sscanf(line, "0::%511[^\n]", ret_path) == 1;
	return sscanf(line, "%*u:%127[^:]:%511[^\n]", names, ret_path) == 2 &&
	       has_word(names, ",", controller);
}

/* Our own path in the hierarchy of a v1 controller, or in v2 with an empty name. */
static bool find_self(const char *text, const char *controller, char ret_path[static 512])
{
	for (const char *line = text; *line;) {
		if (is_line_of(line, controller, ret_path))
			return true;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return false;
}

struct cgroup_mount {
	char root[512], point[512], type[16], options[512];
};

static bool parse_mount(const char *line, size_t len, struct cgroup_mount *ret_mount)
{
	char copy[4096];

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, line, len);
	copy[len] = '\0';
	const char *tail = strstr(copy, " - cgroup");
	return tail &&
	       sscanf(copy, "%*u %*u %*s %511s %511s", ret_mount->root, ret_mount->point) == 2 &&
	       sscanf(tail, " - %15s %*s %511s", ret_mount->type, ret_mount->options) == 2 &&
	       ret_mount->point[0] == '/';
}

/* The mount may show only a part of the hierarchy, as in a container. */
static bool join(const struct cgroup_mount *m, const char *self,
		 char ret_dir[static CGROUP_DIR_SIZE])
{
	size_t root_len = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);

	if (strncmp(self, m->root, root_len) != 0)
		self = "";
	else
		self += root_len;
	if (strcmp(self, "/") == 0)
		self = "";
	int n = snprintf(ret_dir, CGROUP_DIR_SIZE, "%s%s", m->point + 1, self);
	return n > 0 && n < CGROUP_DIR_SIZE;
}

static void add_v1(struct cgroup_view *view, const struct cgroup_mount *m, const char *cgroup)
{
	view->has_v1 = true;
	for (int i = 0; i < CG_CONTROLLERS_; i++) {
		char self[512];
		if (has_word(m->options, ",", controllers[i].v1_name) &&
		    find_self(cgroup, controllers[i].v1_name, self) &&
		    join(m, self, view->at[i].dir))
			view->at[i].version = 1;
	}
}

static bool is_writable(const struct host *host, const char *dir, const char *file)
{
	char path[CGROUP_DIR_SIZE + 64];

	(void)snprintf(path, sizeof(path), "%s%s%s", dir, *file ? "/" : "", file);
	return faccessat(host->root, path, W_OK, AT_EACCESS) == 0;
}

static bool may_build_in(const struct host *host, const char *dir)
{
	return is_writable(host, dir, "") && is_writable(host, dir, "cgroup.procs");
}

static unsigned read_controllers(const struct host *host, const char *dir, const char *file)
{
	char path[CGROUP_DIR_SIZE + 32], have[512] = "";
	unsigned found = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	(void)host_read(host, path, have, sizeof(have));
	for (int i = 0; i < CG_CONTROLLERS_; i++)
		if (has_word(have, " ", controllers[i].name))
			found |= 1u << i;
	return found;
}

/* What children of this cgroup could have.  One with processes in it, but the topmost, hands down
 * what it does now and no more. */
static unsigned handed_down(const struct host *host, const char *dir, bool topmost)
{
	char path[CGROUP_DIR_SIZE + 32], first[8] = "";

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	ssize_t len = host_read(host, path, first, sizeof(first));
	bool occupied = len > 0 || len == -EFBIG;
	return read_controllers(
		host, dir, occupied && !topmost ? "cgroup.subtree_control" : "cgroup.controllers");
}

#define NEEDED (1u << CG_MEMORY | 1u << CG_PIDS | 1u << CG_CPU)

/* As the warden does: from our own cgroup upwards, the first that we may build in and that hands
 * down memory, pids and cpu; else the one that hands down the most of them. */
static unsigned find_v2(const struct host *host, struct cgroup_view *view, size_t top_len)
{
	char dir[CGROUP_DIR_SIZE];
	unsigned best = 0;

	memcpy(dir, view->v2_dir, sizeof(dir));
	for (;;) {
		bool topmost = strlen(dir) <= top_len;
		unsigned found = may_build_in(host, dir) ? handed_down(host, dir, topmost) : 0;
		if (__builtin_popcount(found & NEEDED) > __builtin_popcount(best & NEEDED)) {
			best = found;
			view->v2_rights = true;
			memcpy(view->v2_dir, dir, sizeof(dir));
		}
		char *slash = strrchr(dir, '/');
		if ((best & NEEDED) == NEEDED || topmost || !slash)
			return best;
		*slash = '\0';
	}
}

static void add_v2(const struct host *host, struct cgroup_view *view, const struct cgroup_mount *m,
		   const char *cgroup)
{
	char self[512];

	if (view->has_v2 || !find_self(cgroup, "", self) || !join(m, self, view->v2_dir))
		return;
	view->has_v2 = true;
	unsigned have = read_controllers(host, view->v2_dir, "cgroup.controllers");
	unsigned usable = find_v2(host, view, strlen(m->point + 1));
	if (view->v2_rights)
		have = usable;
	have |= 1u << CG_FREEZER; /* no controller in v2: every cgroup can be frozen */
	for (int i = 0; i < CG_CONTROLLERS_; i++)
		if (view->at[i].version == 0 && have & 1u << i)
			view->at[i].version = 2;
}

static void add_mounts(const struct host *host, struct cgroup_view *view, const char *mountinfo,
		       const char *cgroup)
{
	/* v1 first: a controller that is mounted there is not to be had in v2. */
	for (int version = 1; version <= 2; version++) {
		for (const char *line = mountinfo; *line;) {
			size_t len = strcspn(line, "\n");
			struct cgroup_mount m;
			bool ours = parse_mount(line, len, &m);
			if (ours && version == 1 && strcmp(m.type, "cgroup") == 0)
				add_v1(view, &m, cgroup);
			if (ours && version == 2 && strcmp(m.type, "cgroup2") == 0)
				add_v2(host, view, &m, cgroup);
			line += len;
			line += *line == '\n';
		}
	}
}

void cgroup_view_read(const struct host *host, struct cgroup_view *ret_view)
{
	char cgroup[16384];
	auto_free char *mountinfo = malloc(TABLE_MAX);

	memset(ret_view, 0, sizeof(*ret_view));
	if (!mountinfo || host_read(host, "proc/self/cgroup", cgroup, sizeof(cgroup)) < 0 ||
	    host_read(host, "proc/self/mountinfo", mountinfo, TABLE_MAX) < 0)
		return;
	add_mounts(host, ret_view, mountinfo, cgroup);
}

/* A machine that has v1 controllers mounted cannot use them in v2. */
static bool is_v1_in_use(const struct cgroup_view *view)
{
	for (int i = 0; i < CG_CONTROLLERS_; i++)
		if (view->at[i].version == 1)
			return true;
	return false;
}

#define TO_V2                                                                                      \
	"sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&systemd.unified_cgroup_hierarchy=1 /' "            \
	"/etc/default/grub && sudo update-grub && sudo reboot"

static void check_cgroup_version(const struct host *host, struct finding *f)
{
	struct cgroup_view view;

	cgroup_view_read(host, &view);
	bool v1 = is_v1_in_use(&view);
	if (v1 && view.has_v2)
		finding_found(f, "hybrid (controllers in version 1)");
	else
		finding_found(f, "%s", v1 ? "version 1" : view.has_v2 ? "version 2" : "none");

	if (!v1 && !view.has_v2)
		finding_set(
			f, DOCTOR_DEGRADED,
			"memory is held by a watcher, which sees only what has already happened",
			"sudo mount -t cgroup2 none /sys/fs/cgroup");
	else if (v1 && host->uid != 0)
		finding_set(f, DOCTOR_DEGRADED,
			    "version 1 cannot be given to a user; memory is held by a watcher",
			    TO_V2);
	else
		finding_set(f, DOCTOR_OK, "limits can be held by the kernel", NULL);
}

/* Names of the controllers that are there, or of those that are not; or an empty string. */
static void list(const struct cgroup_view *view, bool present, char *ret_text, size_t size)
{
	size_t len = 0;

	ret_text[0] = '\0';
	for (int i = 0; i < CG_CONTROLLERS_; i++)
		if ((view->at[i].version != 0) == present && len < size)
			len += (size_t)snprintf(ret_text + len, size - len, "%s%s", len ? " " : "",
						controllers[i].name);
}

static void mend_controllers(const struct host *host, const struct cgroup_view *view,
			     struct finding *f)
{
	if (!view->has_v2 || is_v1_in_use(view))
		finding_mend(f, "%s", TO_V2);
	else if (host->uid != 0)
		finding_mend(f, "sudo mkdir -p /etc/systemd/system/user@.service.d && printf "
				"'[Service]\\nDelegate=cpu io memory pids\\n' | sudo tee "
				"/etc/systemd/system/user@.service.d/cay.conf && sudo systemctl "
				"daemon-reload  # then log in again");
	else
		finding_mend(f, "echo '+cpu +io +memory +pids' | sudo tee "
				"/sys/fs/cgroup/cgroup.subtree_control");
}

static void check_cgroup_controllers(const struct host *host, struct finding *f)
{
	struct cgroup_view view;
	char present[128], absent[128], means[256];

	cgroup_view_read(host, &view);
	list(&view, true, present, sizeof(present));
	list(&view, false, absent, sizeof(absent));
	finding_found(f, "%s", present[0] ? present : "none");
	if (!absent[0]) {
		finding_set(f, DOCTOR_OK, "every limit has a controller", NULL);
		return;
	}
	(void)snprintf(means, sizeof(means),
		       "not here: %s; those limits are held by rlimits or a watcher, or not at all",
		       absent);
	finding_set(f, DOCTOR_DEGRADED, means, NULL);
	mend_controllers(host, &view, f);
}

/* The first cgroup in which we may not make one, or NULL. */
static const char *find_forbidden(const struct host *host, const struct cgroup_view *view)
{
	for (int i = 0; i < CG_CONTROLLERS_; i++)
		if (view->at[i].version == 1 && !may_build_in(host, view->at[i].dir))
			return view->at[i].dir;
	return is_v1_in_use(view) || view->v2_rights ? NULL : view->v2_dir;
}

static void check_cgroup_rights(const struct host *host, struct finding *f)
{
	static const char means[] =
		"memory and processes are held by a watcher and rlimits, cpu share and disk I/O by "
		"nobody; receipts say so, and `--require cgroup` is refused";
	struct cgroup_view view;

	cgroup_view_read(host, &view);
	if (!view.has_v1 && !view.has_v2) {
		finding_found(f, "no cgroups");
		finding_set(f, DOCTOR_DEGRADED, means, "sudo mount -t cgroup2 none /sys/fs/cgroup");
		return;
	}
	const char *forbidden = find_forbidden(host, &view);
	if (!forbidden) {
		finding_found(f, "may make cgroups in '/%s'",
			      is_v1_in_use(&view) ? view.at[CG_MEMORY].dir : view.v2_dir);
		finding_set(f, DOCTOR_OK, "each run gets cgroups of its own", NULL);
		return;
	}
	finding_found(f, "no write access to '/%s/cgroup.procs'", forbidden);
	if (host->uid == 0)
		finding_set(f, DOCTOR_DEGRADED, means,
			    host->in_container ? "docker run --privileged --cgroupns=host ..."
					       : "sudo mount -o remount,rw /sys/fs/cgroup");
	else if (is_v1_in_use(&view))
		finding_set(f, DOCTOR_DEGRADED, means, TO_V2);
	else
		finding_set(f, DOCTOR_DEGRADED, means,
			    "systemd-run --user --scope -p Delegate=yes cay run ...");
}

const struct check doctor_cgroup_checks[] = {
	{ "cgroup_version", "cgroups", false, check_cgroup_version },
	{ "cgroup_controllers", "controllers", false, check_cgroup_controllers },
	{ "cgroup_rights", "making cgroups", false, check_cgroup_rights },
	{ 0 },
};
