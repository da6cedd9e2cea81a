/* SPDX-License-Identifier: Apache-2.0 */
#include "base/auto.h"
#include "check.h"
#include "seccomp.h"

#include "base/err.h"
#include "wire/syscalls.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The kernel looks at the low half of an int; so must the filter. */
#define DIRTY 0x5a5a5a5a00000000UL

/* Raw, so that arguments arrive as they are: the value, or -errno. */
#define CALL(nr, a, b, c, d)                                                                       \
	(syscall(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0L, 0L) == -1 ? -errno : 0)

static void load(bool with_listener, int *ret_listener)
{
	struct err err;

	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_INT(seccomp_load(with_listener, ret_listener, &err), 0);
}

/* The end of a child that ran `run` under the filter.  A child, because what a sanitizer does at
 * exit is not allowed either. */
static int under_filter(void (*run)(void))
{
	int status = -1;

	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		load(false, NULL);
		run();
		fflush(stdout);
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	return status;
}

static void unknown(void)
{
	const long numbers[] = { 337, 400, 423, 471, 500, 1000, 0x3fffffff, -1 };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		CHECK_INT(CALL(numbers[i], 0, 0, 0, 0), -ENOSYS);
}
TEST(numbers_that_nobody_knows_do_not_exist)
{
	CHECK_INT(under_filter(unknown), 0);
}

static void denied(void)
{
	const long numbers[] = {
		SYS_mount,
		SYS_umount2,
		SYS_bpf,
		SYS_ptrace,
		SYS_unshare,
		SYS_setns,
		SYS_keyctl,
		SYS_chroot,
		SYS_pivot_root,
		SYS_kexec_load,
		SYS_seccomp,
		SYS_capset,
		SYS_shmget,
		SYS_userfaultfd,
		SYS_perf_event_open,
		SYS_setgroups,
		SYS_move_mount,
		SYS_fsopen,
		SYS_pidfd_getfd,
		SYS_process_vm_readv,
		SYS_mlockall,
		SYS_modify_ldt,
		SYS_clock_settime,
		SYS_uselib,
		467 /* open_tree_attr */,
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		CHECK_INT(CALL(numbers[i], 0, 0, 0, 0), -EPERM);
		CHECK_INT(CALL(numbers[i], -1, -1, -1, -1), -EPERM);
	}
}
TEST(known_calls_that_are_not_allowed_are_eperm)
{
	CHECK_INT(under_filter(denied), 0);
}

static void missing(void)
{
	const long numbers[] = { SYS_clone3,
				 SYS_io_uring_setup,
				 SYS_io_uring_enter,
				 SYS_io_uring_register,
				 SYS_splice,
				 SYS_tee,
				 SYS_vmsplice,
				 SYS_process_madvise,
				 457 /* statmount */ };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		CHECK_INT(CALL(numbers[i], 0, 0, 0, 0), -ENOSYS);
	CHECK_INT(CALL(SYS_sendfile, 1, 0, 0, 1), -EINVAL);
}
TEST(calls_that_programs_can_do_without_do_not_exist)
{
	CHECK_INT(under_filter(missing), 0);
}

static void flushing(void)
{
	CHECK_INT(CALL(SYS_sync, 0, 0, 0, 0), 0);
	CHECK_INT(CALL(SYS_syncfs, -1, 0, 0, 0), 0);
}
TEST(flushing_the_machine_succeeds_and_does_nothing)
{
	CHECK_INT(under_filter(flushing), 0);
}

static void try_clone(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0L, 0L, 0L, 0L);

	if (pid == 0)
		_exit(0);
	CHECK_INT(pid < 0 ? -errno : 0, -EPERM);
}
static void namespaces(void)
{
	const unsigned long flags[] = {
		CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
		CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
		CLONE_NEWNET, CLONE_NEWTIME,   CLONE_NEWUSER | CLONE_NEWNS
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		try_clone(flags[i]);
		try_clone(flags[i] | DIRTY);
	}
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	CHECK_INT(waitpid(child, NULL, 0), child);
}
TEST(a_process_is_born_into_no_new_namespace)
{
	CHECK_INT(under_filter(namespaces), 0);
}

static bool is_family(int family, int protocol)
{
	return family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
	       (family == AF_NETLINK && protocol == NETLINK_ROUTE);
}
static void families(void)
{
	const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };

	for (unsigned long family = 0; family < 64; family++)
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			for (unsigned long protocol = 0; protocol < 24; protocol++) {
				if (is_family((int)family, (int)protocol))
					continue;
				CHECK_INT(CALL(SYS_socket, family, types[i], protocol, 0), -EPERM);
				CHECK_INT(CALL(SYS_socket, family | DIRTY, types[i],
					       protocol | DIRTY, 0),
					  -EPERM);
			}
	CHECK_INT(CALL(SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0), 0);
	CHECK_INT(CALL(SYS_socket, AF_UNIX | DIRTY, SOCK_STREAM, 0, 0), 0);
	CHECK(CALL(SYS_socket, AF_INET, SOCK_STREAM, 0, 0) != -EPERM);
	CHECK(CALL(SYS_socket, AF_NETLINK, SOCK_RAW, DIRTY, 0) != -EPERM);
}
static void protocols(void)
{
	static const int families_of_ip[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < ARRAY_LEN(families_of_ip); i++) {
		int family = families_of_ip[i];
		CHECK(CALL(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP, 0) !=
		      -EPERM);
		CHECK(CALL(SYS_socket, family, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP, 0) !=
		      -EPERM);
		CHECK_INT(CALL(SYS_socket, family, SOCK_STREAM, 262 /* MPTCP */, 0), -EPERM);
		CHECK_INT(CALL(SYS_socket, family, SOCK_DGRAM, 136 /* UDP-Lite */, 0), -EPERM);
		CHECK_INT(CALL(SYS_socket, family, SOCK_STREAM, 132 /* SCTP */, 0), -EPERM);
		CHECK_INT(CALL(SYS_socket, family, SOCK_SEQPACKET, 0, 0), -EPERM);
		CHECK_INT(CALL(SYS_socket, family, SOCK_RAW, IPPROTO_ICMP, 0), -EPERM);
	}
}

TEST(ip_sockets_are_tcp_or_udp)
{
	CHECK_INT(under_filter(protocols), 0);
}

TEST(only_four_socket_families_exist)
{
	CHECK_INT(under_filter(families), 0);
}

static void pairs(void)
{
	int fds[2];

	CHECK_INT(CALL(SYS_socketpair, AF_UNIX | DIRTY, SOCK_STREAM, 0, fds), 0);
	for (unsigned long family = 2; family < 64; family++)
		CHECK_INT(CALL(SYS_socketpair, family | DIRTY, SOCK_STREAM, 0, fds), -EPERM);
}
TEST(a_socket_pair_is_unix)
{
	CHECK_INT(under_filter(pairs), 0);
}

/* setsockopt on no descriptor: the kernel says EBADF to what the filter lets through. */
static long sockopt(unsigned long level, unsigned long option)
{
	long clean = CALL(SYS_setsockopt, -1, level, option, 0);

	CHECK_INT(CALL(SYS_setsockopt, -1, level | DIRTY, option | DIRTY, 0), clean);
	return clean;
}
static void options(void)
{
	CHECK_INT(sockopt(IPPROTO_TCP, TCP_NODELAY), -EBADF);
	CHECK_INT(sockopt(IPPROTO_TCP, TCP_ULP), -EPERM);
	CHECK_INT(sockopt(IPPROTO_TCP, TCP_MD5SIG), -EPERM);
	CHECK_INT(sockopt(SOL_SOCKET, SO_REUSEADDR), -EBADF);
	CHECK_INT(sockopt(SOL_SOCKET, SO_ATTACH_FILTER), -EPERM);
	CHECK_INT(sockopt(SOL_SOCKET, SO_ZEROCOPY), -EPERM);
	CHECK_INT(sockopt(SOL_NETLINK, 1), -EPERM);
	for (unsigned long option = 0; option < 256; option++) {
		bool ip = option < 64 && option != 16 && option != 17;
		bool ip6 =
			option < 80 && option != 34 && option != 35 && option != 64 && option != 65;

		CHECK_INT(sockopt(IPPROTO_IP, option), ip ? -EBADF : -EPERM);
		CHECK_INT(sockopt(IPPROTO_IPV6, option), ip6 ? -EBADF : -EPERM);
	}
}
TEST(socket_options_that_move_pages_or_policies_are_eperm)
{
	CHECK_INT(under_filter(options), 0);
}

static long request(unsigned long number)
{
	long clean = CALL(SYS_ioctl, -1, number, 0, 0);

	CHECK_INT(CALL(SYS_ioctl, -1, number | DIRTY, 0, 0), clean);
	return clean;
}
static void requests(void)
{
	const unsigned long good[] = { TCGETS,
				       TCSETSW,
				       TIOCGWINSZ,
				       TIOCSWINSZ,
				       TIOCSCTTY,
				       TIOCGPTN,
				       FIONREAD,
				       FIOCLEX,
				       0x80086601UL /* FS_IOC_GETFLAGS */,
				       SECCOMP_IOCTL_NOTIF_RECV,
				       SECCOMP_IOCTL_NOTIF_SEND };
	const unsigned long bad[] = { TIOCSTI,
				      TIOCLINUX,
				      TIOCCONS,
				      TIOCSETD,
				      0x5437 /* TIOCVHANGUP */,
				      0x40086602UL /* FS_IOC_SETFLAGS */,
				      0x4c00 /* LOOP_SET_FD */,
				      0x400454caUL /* TUNSETIFF */,
				      0x8916 /* SIOCSIFADDR */,
				      0x8946 /* SIOCETHTOOL */,
				      0xae01 /* KVM_CREATE_VM */,
				      1 /* FIBMAP */,
				      0xc0045877UL /* FIFREEZE */,
				      SECCOMP_IOCTL_NOTIF_ADDFD };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK_INT(request(good[i]), -EBADF);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(request(bad[i]), -EPERM);
}
TEST(ioctl_knows_terminals_and_little_else)
{
	CHECK_INT(under_filter(requests), 0);
}

static void process_options(void)
{
	const unsigned long bad[] = { PR_SET_DUMPABLE,         PR_SET_MM,
				      PR_SET_PTRACER,          PR_CAP_AMBIENT,
				      PR_SET_SECUREBITS,       PR_SET_SECCOMP,
				      PR_SET_KEEPCAPS,         PR_CAPBSET_DROP,
				      PR_SET_SPECULATION_CTRL, PR_SET_SYSCALL_USER_DISPATCH };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_INT(CALL(SYS_prctl, bad[i], 0, 0, 0), -EPERM);
		CHECK_INT(CALL(SYS_prctl, bad[i] | DIRTY, 0, 0, 0), -EPERM);
	}
	CHECK_INT(CALL(SYS_prctl, PR_SET_NAME, "x", 0, 0), 0);
	CHECK_INT(CALL(SYS_prctl, PR_SET_PDEATHSIG | DIRTY, 0, 0, 0), 0);
}
TEST(prctl_changes_nothing_that_guards_the_process)
{
	CHECK_INT(under_filter(process_options), 0);
}

static void personalities(void)
{
	const unsigned long good[] = { 0, 8, 0x20000, 0x20008, 0xffffffff };

	for (unsigned bit = 0; bit < 32; bit++) {
		unsigned long persona = 1UL << bit;
		bool fine = persona == 8 || persona == 0x20000;

		CHECK_INT(CALL(SYS_personality, persona, 0, 0, 0), fine ? 0 : -EPERM);
		CHECK_INT(CALL(SYS_personality, persona | DIRTY, 0, 0, 0), fine ? 0 : -EPERM);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK_INT(CALL(SYS_personality, good[i], 0, 0, 0), 0);
}
TEST(a_personality_does_not_make_memory_executable)
{
	CHECK_INT(under_filter(personalities), 0);
}

static void commands(void)
{
	const unsigned long bad[] = { F_SETLEASE, F_NOTIFY, F_SETSIG };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_INT(CALL(SYS_fcntl, 0, bad[i], 0, 0), -EPERM);
		CHECK_INT(CALL(SYS_fcntl, 0, bad[i] | DIRTY, 0, 0), -EPERM);
	}
	CHECK_INT(CALL(SYS_fcntl, 1, F_GETFL | DIRTY, 0, 0), 0);
	CHECK_INT(CALL(SYS_fcntl, 1, F_DUPFD_CLOEXEC, 0, 0), 0);
	CHECK_INT(CALL(SYS_fcntl, -1, F_OFD_SETLK, 0, 0), -EBADF);
}
TEST(fcntl_takes_no_leases)
{
	CHECK_INT(under_filter(commands), 0);
}

static void nodes(void)
{
	const unsigned long bad[] = { S_IFCHR, S_IFBLK };
	const unsigned long good[] = { 0, S_IFREG, S_IFIFO, S_IFSOCK };

	for (size_t i = 0; i < 2; i++) {
		CHECK_INT(CALL(SYS_mknod, 0, bad[i] | 0600, 0x101, 0), -EPERM);
		CHECK_INT(CALL(SYS_mknod, 0, bad[i] | DIRTY, 0, 0), -EPERM);
		CHECK_INT(CALL(SYS_mknodat, -1, 0, bad[i] | 0600, 0), -EPERM);
		CHECK_INT(CALL(SYS_mknodat, -1, 0, bad[i] | 0x10000 | DIRTY, 0), -EPERM);
	}
	for (size_t i = 0; i < 4; i++) {
		CHECK_INT(CALL(SYS_mknod, 0, good[i] | 0600 | DIRTY, 0, 0), -EFAULT);
		CHECK_INT(CALL(SYS_mknodat, AT_FDCWD, 0, good[i], 0), -EFAULT);
	}
}
TEST(nobody_makes_a_device_or_a_whiteout)
{
	CHECK_INT(under_filter(nodes), 0);
}

static void ceilings(void)
{
	struct rlimit limit;

	for (unsigned long resource = 0; resource < RLIM_NLIMITS; resource++) {
		bool core = resource == RLIMIT_CORE;

		CHECK_INT(CALL(SYS_getrlimit, resource, &limit, 0, 0), 0);
		CHECK_INT(CALL(SYS_prlimit64, 0, resource | DIRTY, 0, &limit), 0);
		CHECK_INT(CALL(SYS_prlimit64, 0, resource, &limit, 0), core ? -EPERM : 0);
		CHECK_INT(CALL(SYS_prlimit64, 0, resource | DIRTY, &limit, 0), core ? -EPERM : 0);
		CHECK_INT(CALL(SYS_setrlimit, resource, &limit, 0, 0), core ? -EPERM : 0);
		CHECK_INT(CALL(SYS_setrlimit, resource | DIRTY, &limit, 0, 0), core ? -EPERM : 0);
	}
	/* A pointer whose low half is zero is no read. */
	CHECK_INT(CALL(SYS_prlimit64, 0, RLIMIT_CORE, 1UL << 32, 0), -EPERM);
}
TEST(the_limit_of_core_files_stands)
{
	CHECK_INT(under_filter(ceilings), 0);
}

#ifdef __x86_64__
static long call_i386(long nr)
{
	long answer;

	__asm__ volatile("int $0x80" : "=a"(answer) : "a"(nr) : "memory", "cc");
	return answer;
}
static void foreign(void)
{
	call_i386(20); /* getpid */
}
TEST(a_call_of_i386_ends_the_process)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		call_i386(20);
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (status != 0)
		SKIP("this kernel has no i386 calls");
	status = under_filter(foreign);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGSYS);
}

static void x32(void)
{
	syscall(0x40000000 | SYS_getpid);
}
TEST(a_call_of_x32_ends_the_process)
{
	int status = under_filter(x32);

	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGSYS);
}
#endif

/* As the agent does it: the one that answers is under the filter too. */
static void answer_one(int listener, int want_nr)
{
	struct seccomp_notif request = { 0 };
	struct seccomp_notif_resp response = { 0 };

	CHECK_INT(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request), 0);
	CHECK_INT(request.data.nr, want_nr);
	response.id = request.id;
	response.error = -EPERM;
	CHECK_INT(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response), 0);
}
TEST(a_tripwire_tells_the_listener_and_is_eperm)
{
	const int numbers[] = { SYS_mount, SYS_bpf, SYS_ptrace, SYS_unshare, SYS_add_key };
	int listener = -1, status = -1;

	load(true, &listener);
	CHECK(fcntl(listener, F_GETFD) & FD_CLOEXEC);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			CHECK_INT(CALL(numbers[i], 0, 0, 0, 0), -EPERM);
		_exit(0);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		answer_one(listener, numbers[i]);
	waitpid(child, &status, 0);
	CHECK_INT(status, 0);
	fflush(stdout);
	_exit(0);
}

TEST(a_filter_has_a_digest_and_calls_have_names)
{
	CHECK_INT((long long)strlen(seccomp_digest), 64);
	CHECK(strcmp(seccomp_digest, seccomp_digest_plain) != 0);
	CHECK_STR(syscall_name(SYS_mount), "mount");
	CHECK_STR(syscall_name(462), "mseal");
	CHECK(syscall_name(400) == NULL);
	CHECK(syscall_name(UINT32_MAX) == NULL);
}
