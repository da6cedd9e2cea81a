/* SPDX-License-Identifier: Apache-2.0
 *
 * outer_fixture.h - runs a test in U, the outer namespace, as the launcher would: with leased ids,
 * a root of its own, one template at /t/0 and an empty image at /l/0. */
#pragma once

#include "ids.h"
#include "jailroot.h"
#include "mounts.h"
#include "outer.h"
#include "plan.h"
#include "template.h"
#include "warden_fixture.h"

#include <signal.h>
#include <sys/prctl.h>

static struct ids ids;
static struct plan plan;
static struct proc_mask masks[PROC_MASKS_MAX];
static int proc_fd, n_masks;

static inline void set_up_outer(void)
{
	CHECK_INT(chdir("/"), 0);
	CHECK_INT(syscall(SYS_setresgid, 0, 0, 0), 0);
	CHECK_INT(syscall(SYS_setresuid, 0, 0, 0), 0);
	umask(0022);
	if (outer_enter(true, &err) < 0)
		END(EXIT_FAILURE, "%s", err.text);
	proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
	n_masks = template_proc_masks(proc_fd, masks, &err);
	CHECK(n_masks > 0);
	CHECK(mkdir("/t/0", 0755) == 0 && mkdir("/l/0", 0755) == 0);
	int template = open("/t/0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(template_build(template, proc_fd, &plan, &err), 0);
	close(template);
	int base = open("/l/0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(template_build_base(base, proc_fd, &err), 0);
	close(base);
}

static inline struct jail_root plain_root(void)
{
	return (struct jail_root){
		.upper = "/t/0",
		.lower = "/l/0",
		.masks = masks,
		.n_masks = n_masks,
		.dev_fd = -1,
		.workspace_fd = -1,
		.limits = &plan.create.limits,
	};
}

static inline void in_outer(void (*run)(void))
{
	struct sys_clone_args args = { .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID,
				       .exit_signal = SIGCHLD };
	int go[2], status = -1;
	char byte = 'g';

	plan.create.limits = profile_find("tiny")->limits;
	CHECK_INT(ids_lease(&ids, 1, &err), 0);
	CHECK_INT(pipe(go), 0);
	fflush(stdout);
	pid_t pid = sys_clone3(&args);
	if (pid < 0)
		SKIP("no user namespaces here");
	if (pid == 0) {
		if (read(go[0], &byte, 1) != 1)
			_exit(EXIT_FAILURE);
		set_up_outer();
		run();
		fflush(stdout);
		_exit(0);
	}
	CHECK_INT(ids_map_outer(&ids, pid, &err), 0);
	CHECK_INT(write(go[1], &byte, 1), 1);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	ids_release(&ids);
	if (WIFEXITED(status) && WEXITSTATUS(status))
		_exit(WEXITSTATUS(status));
	CHECK_INT(status, 0);
}
