/* SPDX-License-Identifier: Apache-2.0 */
#include "seccomp_policy.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* clang-format off */
const char *const policy_allowed[] = {
	/* files */
	"access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat",
	"dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir",
	"fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "fdatasync", "fgetxattr",
	"flistxattr", "flock", "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync",
	"ftruncate", "futimesat", "getcwd", "getdents", "getdents64", "getxattr",
	"inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch", "lchown",
	"lgetxattr", "link", "linkat", "listxattr", "llistxattr", "lremovexattr", "lseek",
	"lsetxattr", "lstat", "mkdir", "mkdirat", "newfstatat", "open", "openat", "openat2",
	"pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead",
	"readlink", "readlinkat", "readv", "removexattr", "rename", "renameat", "renameat2",
	"rmdir", "setxattr", "stat", "statfs", "statx", "symlink", "symlinkat", "truncate",
	"umask", "unlink", "unlinkat", "utime", "utimensat", "utimes", "write", "writev",

	/* waiting and pipes */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
	"eventfd", "eventfd2", "pipe", "pipe2", "poll", "ppoll", "pselect6", "select",
	"signalfd", "signalfd4", "timerfd_create", "timerfd_gettime", "timerfd_settime",

	/* memory */
	"brk", "madvise", "map_shadow_stack", "membarrier", "memfd_create", "mincore", "mlock",
	"mlock2", "mmap", "mprotect", "mremap", "mseal", "msync", "munlock", "munmap",
	"pkey_alloc", "pkey_free", "pkey_mprotect",

	/* processes, threads, signals */
	"alarm", "arch_prctl", "capget", "execve", "execveat", "exit", "exit_group", "fork",
	"futex", "futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "get_robust_list",
	"getcpu", "getegid", "geteuid", "getgid", "getgroups", "getitimer", "getpgid", "getpgrp",
	"getpid", "getppid", "getpriority", "getresgid", "getresuid", "getrlimit", "getrusage",
	"getsid", "gettid", "getuid", "kill", "landlock_add_rule", "landlock_create_ruleset",
	"landlock_restrict_self", "nanosleep", "pause", "pidfd_open", "pidfd_send_signal",
	"restart_syscall", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
	"rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
	"rt_tgsigqueueinfo", "sched_get_priority_max", "sched_get_priority_min",
	"sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval",
	"sched_setaffinity", "sched_setparam", "sched_setscheduler", "sched_yield",
	"set_robust_list", "set_tid_address", "setgid", "setitimer", "setpgid", "setpriority",
	"setregid", "setresgid", "setresuid", "setreuid", "setsid", "setuid", "sigaltstack",
	"tgkill", "tkill", "vfork", "wait4", "waitid",

	/* time and facts */
	"clock_getres", "clock_gettime", "clock_nanosleep", "getrandom", "gettimeofday",
	"sysinfo", "time", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
	"timer_settime", "times", "uname",

	/* sockets, once they are there */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
	"listen", "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "shutdown",
	NULL
};

const char *const policy_denied[] = {
	"adjtimex", "cachestat", "capset", "clock_adjtime", "clock_settime", "fanotify_init",
	"fanotify_mark", "get_mempolicy", "get_thread_area", "io_cancel", "io_destroy",
	"io_getevents", "io_pgetevents", "io_setup", "io_submit", "ioprio_get", "ioprio_set",
	"lsm_get_self_attr", "lsm_list_modules", "lsm_set_self_attr", "migrate_pages", "mlockall",
	"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
	"msgctl", "msgget", "msgrcv", "msgsnd", "munlockall", "process_mrelease",
	"remap_file_pages", "sched_getattr", "sched_setattr", "seccomp", "semctl", "semget",
	"semop", "semtimedop", "set_mempolicy", "set_mempolicy_home_node", "set_thread_area",
	"setdomainname", "setfsgid", "setfsuid", "setgroups", "sethostname", "settimeofday",
	"shmat", "shmctl", "shmdt", "shmget", "sync_file_range", "uprobe", "uretprobe", "ustat",

	/* The kernel dropped these or never had them. */
	"_sysctl", "afs_syscall", "create_module", "epoll_ctl_old", "epoll_wait_old",
	"get_kernel_syms", "getpmsg", "nfsservctl", "putpmsg", "query_module", "security",
	"sysfs", "tuxcall", "uselib", "vserver",
	NULL
};

const char *const policy_tripwires[] = {
	/* mounts and roots */
	"chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr",
	"move_mount", "open_tree", "open_tree_attr", "pivot_root", "umount2",
	/* namespaces */
	"setns", "unshare",
	/* other processes */
	"kcmp", "pidfd_getfd", "process_vm_readv", "process_vm_writev", "ptrace",
	/* files by number instead of by name */
	"name_to_handle_at", "open_by_handle_at",
	/* keys, which no namespace separates */
	"add_key", "keyctl", "request_key",
	/* the kernel itself */
	"bpf", "delete_module", "finit_module", "init_module", "kexec_file_load", "kexec_load",
	"lookup_dcookie", "mbind", "memfd_secret", "modify_ldt", "move_pages", "perf_event_open",
	"syslog", "userfaultfd",
	/* the machine */
	"acct", "ioperm", "iopl", "quotactl", "quotactl_fd", "reboot", "swapoff", "swapon",
	"vhangup",
	NULL
};

const char *const policy_missing[] = {
	/* clone3 keeps its flags behind a pointer, where no filter can read them. */
	"clone3",
	/* Its operations are not seen by seccomp at all. */
	"io_uring_enter", "io_uring_register", "io_uring_setup",
	/* They carry pages of the shared, read-only root into kernel buffers. */
	"splice", "tee", "vmsplice",
	"listmount", "listns", "process_madvise", "statmount",
	/* Libraries fall back to the older calls, which are allowed. */
	"file_getattr", "file_setattr", "getxattrat", "listxattrat", "removexattrat",
	"setxattrat",
	NULL
};

const struct policy_answer policy_answers[] = {
	/* Zero-copy as above; EINVAL is the errno on which libuv, Go and Python copy by hand. */
	{ "sendfile", EINVAL },
	/* One sandbox must not make the whole machine flush. */
	{ "sync", 0 },
	{ "syncfs", 0 },
	{ NULL, 0 }
};

#define NAMESPACES                                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWTIME)
_Static_assert(NAMESPACES == 0x7e020080, "the namespace flags of clone");

/* An int argument with one value, or with certain bits. */
#define IS(arg, number) { POLICY_INT, (uint32_t)(number), arg }
#define BITS(arg, mask, bits) { mask, bits, arg }

#define FAMILY(family) { "socket", { IS(0, family) } }
#define INET_SOCKET(family, type, protocol)                                                        \
	{ "socket", { IS(0, family), BITS(1, 0xf, type), IS(2, protocol) } }
/* TCP and UDP alone: MPTCP, UDP-Lite, SCTP, DCCP, L2TP and their like would load modules. */
#define INET(family)                                                                               \
	INET_SOCKET(family, SOCK_STREAM, 0), INET_SOCKET(family, SOCK_STREAM, IPPROTO_TCP),        \
	INET_SOCKET(family, SOCK_DGRAM, 0), INET_SOCKET(family, SOCK_DGRAM, IPPROTO_UDP)
#define IOCTL(request) { "ioctl", { IS(1, request) } }
#define PRCTL(option) { "prctl", { IS(0, option) } }
#define FCNTL(command) { "fcntl", { IS(1, command) } }
#define SOCKOPT(level, option) { "setsockopt", { IS(1, level), IS(2, option) } }
#define SOCKOPTS(level, mask, bits) { "setsockopt", { IS(1, level), BITS(2, mask, bits) } }

/* Any number below 16 but RLIMIT_CORE, which is 4: some bit is not as it is in 4. */
#define LIMIT_BUT_CORE(call, arg)                                                                  \
	{ call, { BITS(arg, 1, 1) } }, { call, { BITS(arg, 2, 2) } },                              \
	{ call, { BITS(arg, 4, 0) } }, { call, { BITS(arg, 8, 8) } }

#define NODE(call, arg, type) { call, { BITS(arg, S_IFMT, type) } }

const struct policy_rule policy_rules[] = {
	{ "clone", { BITS(0, NAMESPACES, 0) } },

	FAMILY(AF_UNIX), INET(AF_INET), INET(AF_INET6),
	{ "socket", { IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE) } },
	{ "socketpair", { IS(0, AF_UNIX) } },

	/* All of IP below 64 but 16 and 17, IPSEC_POLICY and XFRM_POLICY; netfilter starts at 64. */
	SOCKOPTS(IPPROTO_IP, 0xffffffd0, 0x00), SOCKOPTS(IPPROTO_IP, 0xffffffe0, 0x20),
	SOCKOPTS(IPPROTO_IP, 0xffffffc2, 0x02), SOCKOPTS(IPPROTO_IP, 0xffffffc4, 0x04),
	SOCKOPTS(IPPROTO_IP, 0xffffffc8, 0x08),
	/* All of IPv6 below 80 but 34 and 35, the same two, and 64 and 65, netfilter. */
	SOCKOPTS(IPPROTO_IPV6, 0xffffffe0, 0x00), SOCKOPTS(IPPROTO_IPV6, 0xffffffe2, 0x20),
	SOCKOPTS(IPPROTO_IPV6, 0xffffffe4, 0x24), SOCKOPTS(IPPROTO_IPV6, 0xffffffe8, 0x28),
	SOCKOPTS(IPPROTO_IPV6, 0xfffffff0, 0x30), SOCKOPTS(IPPROTO_IPV6, 0xfffffff2, 0x42),
	SOCKOPTS(IPPROTO_IPV6, 0xfffffff4, 0x44), SOCKOPTS(IPPROTO_IPV6, 0xfffffff8, 0x48),
	/* Not TCP_ULP, which puts kernel TLS and ESP into the path of the bytes. */
	SOCKOPT(IPPROTO_TCP, TCP_NODELAY), SOCKOPT(IPPROTO_TCP, TCP_MAXSEG),
	SOCKOPT(IPPROTO_TCP, TCP_CORK), SOCKOPT(IPPROTO_TCP, TCP_KEEPIDLE),
	SOCKOPT(IPPROTO_TCP, TCP_KEEPINTVL), SOCKOPT(IPPROTO_TCP, TCP_KEEPCNT),
	SOCKOPT(IPPROTO_TCP, TCP_SYNCNT), SOCKOPT(IPPROTO_TCP, TCP_LINGER2),
	SOCKOPT(IPPROTO_TCP, TCP_DEFER_ACCEPT), SOCKOPT(IPPROTO_TCP, TCP_WINDOW_CLAMP),
	SOCKOPT(IPPROTO_TCP, TCP_QUICKACK), SOCKOPT(IPPROTO_TCP, TCP_USER_TIMEOUT),
	SOCKOPT(IPPROTO_TCP, TCP_FASTOPEN), SOCKOPT(IPPROTO_TCP, TCP_FASTOPEN_CONNECT),
	SOCKOPT(IPPROTO_TCP, TCP_NOTSENT_LOWAT),
	SOCKOPT(SOL_SOCKET, SO_REUSEADDR), SOCKOPT(SOL_SOCKET, SO_BROADCAST),
	SOCKOPT(SOL_SOCKET, SO_SNDBUF), SOCKOPT(SOL_SOCKET, SO_RCVBUF),
	SOCKOPT(SOL_SOCKET, SO_KEEPALIVE), SOCKOPT(SOL_SOCKET, SO_LINGER),
	SOCKOPT(SOL_SOCKET, SO_REUSEPORT), SOCKOPT(SOL_SOCKET, SO_PASSCRED),
	SOCKOPT(SOL_SOCKET, SO_RCVTIMEO_OLD), SOCKOPT(SOL_SOCKET, SO_SNDTIMEO_OLD),
	SOCKOPT(SOL_SOCKET, SO_RCVTIMEO_NEW), SOCKOPT(SOL_SOCKET, SO_SNDTIMEO_NEW),
	SOCKOPT(SOL_SOCKET, SO_TIMESTAMP_OLD), SOCKOPT(SOL_SOCKET, SO_TIMESTAMP_NEW),

	/* Terminals as programs use them; never TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD. */
	IOCTL(TCGETS), IOCTL(TCSETS), IOCTL(TCSETSW), IOCTL(TCSETSF), IOCTL(TCGETS2),
	IOCTL(TCSETS2), IOCTL(TCSETSW2), IOCTL(TCSETSF2), IOCTL(TCSBRK), IOCTL(TCXONC),
	IOCTL(TCFLSH), IOCTL(TIOCEXCL), IOCTL(TIOCSCTTY), IOCTL(TIOCGPGRP), IOCTL(TIOCSPGRP),
	IOCTL(TIOCOUTQ), IOCTL(TIOCGWINSZ), IOCTL(TIOCSWINSZ), IOCTL(TIOCNOTTY), IOCTL(TIOCGSID),
	IOCTL(TIOCGPTN), IOCTL(TIOCSPTLCK), IOCTL(TIOCGPTPEER),
	IOCTL(FIONREAD), IOCTL(FIONBIO), IOCTL(FIOCLEX), IOCTL(FIONCLEX), IOCTL(FS_IOC_GETFLAGS),
	IOCTL(FICLONE),
	/* The agent answers tripwires under this same filter.  Nobody else has a listener, and
	 * the call that makes one is denied. */
	IOCTL(SECCOMP_IOCTL_NOTIF_RECV), IOCTL(SECCOMP_IOCTL_NOTIF_SEND),

	PRCTL(PR_SET_NAME), PRCTL(PR_GET_NAME), PRCTL(PR_SET_PDEATHSIG), PRCTL(PR_GET_PDEATHSIG),
	PRCTL(PR_GET_DUMPABLE), PRCTL(PR_CAPBSET_READ), PRCTL(PR_SET_NO_NEW_PRIVS),
	PRCTL(PR_GET_NO_NEW_PRIVS), PRCTL(PR_GET_SECCOMP), PRCTL(PR_SET_VMA),
	PRCTL(PR_SET_CHILD_SUBREAPER), PRCTL(PR_GET_CHILD_SUBREAPER), PRCTL(PR_SET_TIMERSLACK),
	PRCTL(PR_GET_TIMERSLACK), PRCTL(PR_SET_THP_DISABLE), PRCTL(PR_GET_THP_DISABLE),

	{ "personality", { IS(0, 0) } }, { "personality", { IS(0, 8) } },
	{ "personality", { IS(0, 0x20000) } }, { "personality", { IS(0, 0x20008) } },
	{ "personality", { IS(0, 0xffffffff) } },

	FCNTL(F_DUPFD), FCNTL(F_DUPFD_CLOEXEC), FCNTL(F_GETFD), FCNTL(F_SETFD), FCNTL(F_GETFL),
	FCNTL(F_SETFL), FCNTL(F_GETLK), FCNTL(F_SETLK), FCNTL(F_SETLKW), FCNTL(F_OFD_GETLK),
	FCNTL(F_OFD_SETLK), FCNTL(F_OFD_SETLKW), FCNTL(F_GETOWN), FCNTL(F_SETOWN),
	FCNTL(F_SETPIPE_SZ), FCNTL(F_GETPIPE_SZ), FCNTL(F_ADD_SEALS), FCNTL(F_GET_SEALS),

	/* RLIMIT_CORE stays 1: with 0 a crash would start the host's core_pattern helper. */
	LIMIT_BUT_CORE("setrlimit", 0), LIMIT_BUT_CORE("prlimit64", 1),
	{ "prlimit64", { { POLICY_POINTER, 0, 2 } } }, /* reads only */

	NODE("mknod", 1, 0), NODE("mknod", 1, S_IFREG), NODE("mknod", 1, S_IFIFO),
	NODE("mknod", 1, S_IFSOCK),
	NODE("mknodat", 2, 0), NODE("mknodat", 2, S_IFREG), NODE("mknodat", 2, S_IFIFO),
	NODE("mknodat", 2, S_IFSOCK),
	{ NULL, { { 0, 0, 0 } } }
};

const struct policy_number policy_numbers[] = {
	{ "cachestat", 451 }, { "fchmodat2", 452 }, { "map_shadow_stack", 453 },
	{ "futex_wake", 454 }, { "futex_wait", 455 }, { "futex_requeue", 456 },
	{ "statmount", 457 }, { "listmount", 458 }, { "lsm_get_self_attr", 459 },
	{ "lsm_set_self_attr", 460 }, { "lsm_list_modules", 461 }, { "mseal", 462 },
	{ "setxattrat", 463 }, { "getxattrat", 464 }, { "listxattrat", 465 },
	{ "removexattrat", 466 }, { "open_tree_attr", 467 }, { "file_getattr", 468 },
	{ "file_setattr", 469 }, { "listns", 470 },
	{ NULL, 0 }
};

const struct policy_number policy_numbers_x86_64[] = {
	{ "uretprobe", 335 }, { "uprobe", 336 },
	{ NULL, 0 }
};
