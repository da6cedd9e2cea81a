/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_tools.c - what else could isolate code on this machine.  The jail needs none of it. */
#include "doctor.h"

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* "path, what --version says in its first line".  False when the program is not there. */
static bool find_version(const struct host *host, struct finding *f, const char *name)
{
	char path[PATH_MAX], line[160];

	if (!host_find_program(host, name, path, sizeof(path))) {
		finding_found(f, "not found");
		return false;
	}
	char *argv[] = { path, "--version", NULL };
	int r = doctor_run(argv, line, sizeof(line));
	if (r == 0 && line[0])
		finding_found(f, "%s, %s", path, line);
	else
		finding_found(f, "%s, does not tell its version", path);
	return true;
}

static void judge_oci(const struct host *host, struct finding *f, const char *name,
		      const char *means, const char *mend)
{
	if (find_version(host, f, name))
		finding_set(f, DOCTOR_OK, means, NULL);
	else
		finding_set(f, DOCTOR_MISSING, "not needed by the jail, the default", mend);
}

static void check_crun(const struct host *host, struct finding *f)
{
	judge_oci(host, f, "crun", "an OCI runtime is there; this cay runs jails only",
		  "sudo apt-get install crun");
}

static void check_runc(const struct host *host, struct finding *f)
{
	judge_oci(host, f, "runc", "an OCI runtime is there; this cay runs jails only",
		  "sudo apt-get install runc");
}

static void check_runsc(const struct host *host, struct finding *f)
{
	judge_oci(host, f, "runsc",
		  "gVisor is there; this cay runs jails only and refuses `--isolation gvisor`",
		  "sudo apt-get install runsc");
}

/* Connecting never waits: a listener that is full says so at once. */
static bool can_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path, path, strlen(path) + 1);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

static void judge_engine(const struct host *host, struct finding *f, const char *name,
			 const char *socket_path, const char *mend)
{
	if (!find_version(host, f, name)) {
		finding_set(f, DOCTOR_MISSING, "cay does not need it", mend);
		return;
	}
	if (can_connect(socket_path))
		finding_set(f, DOCTOR_OK, "it is there and answers; cay does not need it", NULL);
	else
		finding_set(f, DOCTOR_DEGRADED,
			    "the program is there, but nobody answers at its socket; cay does not "
			    "need it",
			    NULL);
}

static void check_docker(const struct host *host, struct finding *f)
{
	const char *given = getenv("DOCKER_HOST");
	const char *path =
		given && strncmp(given, "unix://", 7) == 0 ? given + 7 : "/var/run/docker.sock";

	judge_engine(host, f, "docker", path, "sudo apt-get install docker.io");
	if (f->status == DOCTOR_DEGRADED)
		finding_mend(f, "sudo systemctl start docker");
}

static void check_podman(const struct host *host, struct finding *f)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[PATH_MAX] = "/run/podman/podman.sock";

	if (host->uid != 0 && runtime)
		(void)snprintf(path, sizeof(path), "%s/podman/podman.sock", runtime);
	judge_engine(host, f, "podman", path, "sudo apt-get install podman");
	if (f->status == DOCTOR_DEGRADED)
		finding_mend(f, "%s",
			     host->uid == 0 ? "sudo systemctl start podman.socket"
					    : "systemctl --user start podman.socket");
}

static void check_kvm(const struct host *host, struct finding *f)
{
	auto_close int fd = openat(host->root, "dev/kvm", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (fd >= 0) {
		finding_found(f, "/dev/kvm opens");
		finding_set(f, DOCTOR_OK, "virtual machines can be fast; this cay runs jails only",
			    NULL);
	} else if (errno == EACCES || errno == EPERM) {
		finding_found(f, "/dev/kvm: %s", strerror(errno));
		finding_set(f, DOCTOR_DEGRADED, "it is there but not for you; the jail needs none",
			    NULL);
		finding_mend(f, "sudo usermod -aG kvm %s  # then log in again",
			     *host->user ? host->user : "USER");
	} else {
		finding_found(f, "/dev/kvm: %s", strerror(errno));
		finding_set(f, DOCTOR_MISSING,
			    "virtual machines would be slow; the jail needs none",
			    "sudo modprobe kvm_intel || sudo modprobe kvm_amd");
	}
}

const struct check doctor_tool_checks[] = {
	{ "crun", "crun", false, check_crun },
	{ "runc", "runc", false, check_runc },
	{ "runsc", "gVisor (runsc)", false, check_runsc },
	{ "docker", "Docker", false, check_docker },
	{ "podman", "Podman", false, check_podman },
	{ "kvm", "KVM", false, check_kvm },
	{ 0 },
};
