/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_namespaces.c - user namespaces, and what must be possible inside of one. */
#include "doctor.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/sys.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define RANGE_NEEDED 1024 /* for one run */
#define RANGE_WANTED 65536
#define RANGES_START 100000
#define SUBID_FILE_MAX 65536
#define FIRST_HOST_UID 1879048192ull /* of the first run as root */

#define OUTSIDE_OF_CONTAINER                                                                       \
	"docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "         \
	"--security-opt systempaths=unconfined ..."

/* A namespace that may do nothing is none: AppArmor gives such ones, so mount something. */
static int try_namespace(void *arg, struct err *err)
{
	const struct host *host = arg;
	int r = doctor_become_root(host->uid, host->gid, err);

	if (r < 0)
		return r;
	if (sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_errno(err, errno, "make mounts private");
	if (sys_mount("tmpfs", "/tmp", "tmpfs", 0, "size=1m") < 0)
		return err_errno(err, errno, "mount a tmpfs");
	return 0;
}

static int try_overlay(void *arg, struct err *err)
{
	int r = try_namespace(arg, err);

	if (r < 0)
		return r;
	if (mkdir("/tmp/empty", 0755) < 0 || mkdir("/tmp/root", 0755) < 0)
		return err_errno(err, errno, "make a directory");
	if (sys_mount("overlay", "/tmp/root", "overlay", 1 /* MS_RDONLY */,
		      "lowerdir=/tmp/empty:/usr") < 0)
		return err_errno(err, errno, "mount an overlay of /usr");
	return 0;
}

static int try_proc(void *arg, struct err *err)
{
	int r = try_namespace(arg, err);

	if (r < 0)
		return r;
	if (sys_mount("proc", "/tmp", "proc", 0, NULL) < 0)
		return err_errno(err, errno, "mount a proc of its own");
	return 0;
}

/* A switch of the host that forbids user namespaces, and how to turn it. */
static const struct {
	const char *key, *path;
	long long forbids;
	bool only_users; /* root is not held back by it */
	const char *mend;
} switches[] = {
	{ "user.max_user_namespaces", "proc/sys/user/max_user_namespaces", 0, false,
	  "sudo sysctl -w user.max_user_namespaces=15000" },
	{ "kernel.unprivileged_userns_clone", "proc/sys/kernel/unprivileged_userns_clone", 0, true,
	  "sudo sysctl -w kernel.unprivileged_userns_clone=1" },
	{ "kernel.apparmor_restrict_unprivileged_userns",
	  "proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1, true,
	  "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" },
};

static const char mend_generic[] =
	"sudo apt-get update && sudo apt-get full-upgrade && sudo reboot";

void userns_explain(const struct host *host, const struct err *tried, struct finding *f)
{
	static const char means[] = "every jail is built in one, so `cay run` cannot work";

	for (size_t i = 0; i < ARRAY_LEN(switches); i++) {
		long long value;
		if ((switches[i].only_users && host->uid == 0) ||
		    host_read_number(host, switches[i].path, &value) < 0 ||
		    value != switches[i].forbids)
			continue;
		finding_found(f, "%s is %lld", switches[i].key, value);
		finding_set(f, DOCTOR_MISSING, means, switches[i].mend);
		return;
	}
	finding_found(f, "%s%s", tried->text, host->in_container ? " (in a container)" : "");
	finding_set(f, DOCTOR_MISSING, means,
		    host->in_container ? OUTSIDE_OF_CONTAINER : mend_generic);
}

static void check_user_namespaces(const struct host *host, struct finding *f)
{
	struct err err;
	long long most;

	if (doctor_try(CLONE_NEWUSER | CLONE_NEWNS, try_namespace, (void *)host, &err) < 0) {
		userns_explain(host, &err, f);
		return;
	}
	if (host_read_number(host, "proc/sys/user/max_user_namespaces", &most) == 0)
		finding_found(f, "can be made, at most %lld", most);
	else
		finding_found(f, "can be made");
	finding_set(f, DOCTOR_OK, "every jail has one of its own", NULL);
}

/* What is tried in a namespace says nothing where there is none; then that is what to mend. */
static bool lacks_namespace(const struct host *host, struct finding *f)
{
	struct err err;

	if (doctor_try(CLONE_NEWUSER | CLONE_NEWNS, try_namespace, (void *)host, &err) == 0)
		return false;
	userns_explain(host, &err, f);
	return true;
}

static void check_overlay(const struct host *host, struct finding *f)
{
	struct err err;

	if (doctor_try(CLONE_NEWUSER | CLONE_NEWNS, try_overlay, (void *)host, &err) == 0) {
		finding_found(f, "can be mounted");
		finding_set(f, DOCTOR_OK, "each run sees /usr through an overlay of its own", NULL);
		return;
	}
	if (lacks_namespace(host, f))
		return;
	finding_found(f, "%s", err.text);
	finding_set(f, DOCTOR_MISSING, "the root of a jail is an overlay, so `cay run` cannot work",
		    err.errnum == ENODEV ? "sudo modprobe overlay"
		    : host->in_container ? OUTSIDE_OF_CONTAINER
					 : mend_generic);
}

static void check_proc(const struct host *host, struct finding *f)
{
	struct err err;

	if (doctor_try(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, try_proc, (void *)host, &err) ==
	    0) {
		finding_found(f, "can be mounted");
		finding_set(f, DOCTOR_OK, "each run has a /proc that shows its own processes",
			    NULL);
		return;
	}
	if (lacks_namespace(host, f))
		return;
	finding_found(f, "%s", err.text);
	finding_set(
		f, DOCTOR_MISSING,
		err.errnum == EPERM
			? "something is mounted over parts of this /proc, and the kernel gives a "
			  "new one only where all of it can be seen"
			: "a jail needs a /proc of its own, so `cay run` cannot work",
		host->in_container ? OUTSIDE_OF_CONTAINER
				   : "grep ' /proc/' /proc/self/mountinfo  # unmount these");
}

/* One line "name:first:count"; 0 when it is not one. */
static uint64_t parse_range(const char *line, size_t len, const char **ret_owner,
			    size_t *ret_owner_len, uint64_t *ret_first)
{
	char copy[256];
	unsigned long first, count;
	int end = 0;

	if (len >= sizeof(copy))
		return 0;
	memcpy(copy, line, len);
	copy[len] = '\0';
	size_t owner = strcspn(copy, ":");
	if (sscanf(copy + owner, ":%10lu:%10lu%n", &first, &count, &end) != 2 ||
	    copy[owner + (size_t)end] != '\0')
		return 0;
	*ret_owner = line;
	*ret_owner_len = owner;
	*ret_first = first;
	return count;
}

static bool is_owner(const char *owner, size_t len, const char *user, uid_t uid)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", (unsigned)uid);
	return (*user && strlen(user) == len && memcmp(owner, user, len) == 0) ||
	       (strlen(number) == len && memcmp(owner, number, len) == 0);
}

uint64_t subid_largest(const char *text, const char *user, uid_t uid)
{
	uint64_t largest = 0;

	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n"), owner_len;
		const char *owner;
		uint64_t first, count = parse_range(line, len, &owner, &owner_len, &first);
		if (count > 0 && is_owner(owner, owner_len, user, uid))
			largest = count > largest ? count : largest;
		line += len;
		line += *line == '\n';
	}
	return largest;
}

uint64_t subid_next(const char *text)
{
	uint64_t next = RANGES_START;

	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n"), owner_len;
		const char *owner;
		uint64_t first = 0, count = parse_range(line, len, &owner, &owner_len, &first);
		if (count > 0 && first + count > next)
			next = first + count;
		line += len;
		line += *line == '\n';
	}
	return next;
}

/* newuidmap and newgidmap work by a set-uid bit or by a file capability. */
static bool has_helper(const struct host *host, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	if (!host_find_program(host, name, path, sizeof(path)) || stat(path, &st) < 0)
		return false;
	return (st.st_uid == 0 && st.st_mode & S_ISUID) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

static void check_ranges_of_root(const struct host *host, struct finding *f)
{
	char map[256] = "";
	unsigned long long inside, outside, count = 0;

	(void)host_read(host, "proc/self/uid_map", map, sizeof(map));
	if (sscanf(map, "%llu %llu %llu", &inside, &outside, &count) != 3 || inside != 0)
		count = 0;
	finding_found(f, "%llu uids", count);
	if (count > FIRST_HOST_UID)
		finding_set(f, DOCTOR_OK, "each run gets 65536 host uids that nobody else has",
			    NULL);
	else
		finding_set(f, DOCTOR_MISSING,
			    "this root is root of a user namespace and has no uids to give to runs",
			    "# run cay outside of this container");
}

static void check_ranges_of_user(const struct host *host, struct finding *f)
{
	static const char means[] =
		"all runs have your own uid: the walls between them are one fewer";
	char text[SUBID_FILE_MAX] = "";

	(void)host_read(host, "etc/subuid", text, sizeof(text));
	uint64_t uids = subid_largest(text, host->user, host->uid);
	uint64_t next = subid_next(text);
	text[0] = '\0';
	(void)host_read(host, "etc/subgid", text, sizeof(text));
	uint64_t gids = subid_largest(text, host->user, host->uid);
	if (subid_next(text) > next)
		next = subid_next(text);

	if (!has_helper(host, "newuidmap") || !has_helper(host, "newgidmap")) {
		finding_found(f, "no newuidmap and newgidmap that may map");
		finding_set(f, DOCTOR_DEGRADED, means, "sudo apt-get install --reinstall uidmap");
		return;
	}
	finding_found(f, "%llu uids and %llu gids for '%s'", (unsigned long long)uids,
		      (unsigned long long)gids, host->user);
	if (uids >= RANGE_NEEDED && gids >= RANGE_NEEDED) {
		finding_set(f, DOCTOR_OK, "runs have uids that are not yours", NULL);
		return;
	}
	unsigned long long last = next + RANGE_WANTED - 1;
	finding_set(f, DOCTOR_DEGRADED, means, NULL);
	finding_mend(f, "sudo usermod --add-subuids %llu-%llu --add-subgids %llu-%llu %s",
		     (unsigned long long)next, last, (unsigned long long)next, last,
		     *host->user ? host->user : "USER");
}

static void check_id_ranges(const struct host *host, struct finding *f)
{
	if (host->uid == 0)
		check_ranges_of_root(host, f);
	else
		check_ranges_of_user(host, f);
}

const struct check doctor_namespace_checks[] = {
	{ "user_namespaces", "user namespaces", true, check_user_namespaces },
	{ "id_ranges", "uid ranges", true, check_id_ranges },
	{ "overlay", "overlay", true, check_overlay },
	{ "proc", "/proc", true, check_proc },
	{ 0 },
};
