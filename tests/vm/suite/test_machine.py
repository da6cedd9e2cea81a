# SPDX-License-Identifier: Apache-2.0
"""The guest is the machine the other tests count on: cgroup v2 alone, delegated, with Landlock."""
import ctypes
import os

GIVEN = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service"


def own_cgroup():
    with open("/proc/self/cgroup") as file:
        lines = file.read().split()
    assert len(lines) == 1 and lines[0].startswith("0::"), lines
    return "/sys/fs/cgroup" + lines[0][len("0::"):]


def test_only_cgroup_v2_is_there():
    own_cgroup()
    with open("/proc/mounts") as file:
        kinds = [line.split()[2] for line in file]
    assert "cgroup2" in kinds and "cgroup" not in kinds


def test_a_child_cgroup_gets_its_controllers(role):
    parent = os.path.dirname(own_cgroup())
    if role == "user":
        assert parent == GIVEN and os.getuid() == 1000
    child = os.path.join(parent, "probe")
    os.mkdir(child)
    try:
        with open(os.path.join(child, "cgroup.subtree_control"), "w") as file:
            file.write("+memory +cpu +pids")
        with open(os.path.join(child, "memory.max"), "w") as file:
            file.write("64M")
        with open(os.path.join(child, "cgroup.controllers")) as file:
            assert {"memory", "cpu", "pids", "io"} <= set(file.read().split())
    finally:
        os.rmdir(child)


def test_the_user_may_not_leave_the_delegated_tree(role):
    if role == "root":
        return
    assert not os.access(os.path.dirname(GIVEN) + "/cgroup.procs", os.W_OK)


def test_landlock_is_in_this_kernel():
    create_ruleset, version_flag = 444, 1
    assert ctypes.CDLL(None).syscall(create_ruleset, None, 0, version_flag) >= 1
