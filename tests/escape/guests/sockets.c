/* SPDX-License-Identifier: Apache-2.0
 *
 * Socket families that the kernel has too many of, and the way out to the network. */
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static bool may_exist(int family, int protocol)
{
	return family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
	       (family == AF_NETLINK && protocol == NETLINK_ROUTE);
}

static void families(int argc, char **argv)
{
	const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, 10 };

	(void)argc;
	(void)argv;
	for (int family = 0; family < 64; family++)
		for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
			for (int protocol = 0; protocol < 22; protocol++) {
				if (may_exist(family, protocol))
					continue;
				int fd = socket(family, types[t], protocol);
				if (fd != -1 || errno != EPERM)
					fail("socket(%d, %d, %d): %s", family, types[t], protocol,
					     strerror(errno));
			}
	for (int family = 2; family < 64; family++) {
		int fds[2];
		REFUSED(socketpair(family, SOCK_STREAM, 0, fds), EPERM);
	}
	WORKED(socket(AF_UNIX, SOCK_STREAM, 0));
	WORKED(socket(AF_INET, SOCK_STREAM, 0));
	WORKED(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
}

/* The high half of an int argument belongs to nobody. */
static void dirty_halves(int argc, char **argv)
{
	unsigned long dirt = 0xdeadbeef00000000ul;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)argc;
	(void)argv;
	REFUSED(syscall(SYS_socket, 38 | dirt, SOCK_SEQPACKET | dirt, 0), EPERM);
	REFUSED(syscall(SYS_socket, AF_NETLINK | dirt, SOCK_RAW, 6 | dirt), EPERM);
	REFUSED(syscall(SYS_setsockopt, fd, IPPROTO_TCP | dirt, TCP_ULP | dirt, "tls", 3), EPERM);
	REFUSED(syscall(SYS_personality, 0x400000 | dirt), EPERM);
	REFUSED(syscall(SYS_prctl, 4 | dirt, 1, 0, 0, 0), EPERM);
	REFUSED(syscall(SYS_fcntl, fd, F_SETSIG | dirt, 10), EPERM);
	REFUSED(syscall(SYS_ioctl, 0, 0x5412 /* TIOCSTI */ | dirt, "x"), EPERM);
	WORKED(syscall(SYS_socket, AF_UNIX | dirt, SOCK_STREAM, 0));
}

static void upper_layers(int argc, char **argv)
{
	int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET6, SOCK_DGRAM, 0);
	char policy[168] = { 0 };

	(void)argc;
	(void)argv;
	REFUSED(setsockopt(tcp, IPPROTO_TCP, TCP_ULP, "tls", 3), EPERM);
	REFUSED(setsockopt(tcp, IPPROTO_TCP, TCP_ULP, "espintcp", 8), EPERM);
	REFUSED(setsockopt(tcp, IPPROTO_IP, 17, policy, sizeof(policy)), EPERM);
	REFUSED(setsockopt(udp, IPPROTO_IPV6, 35, policy, sizeof(policy)), EPERM);
	REFUSED(setsockopt(tcp, IPPROTO_IP, 64, policy, sizeof(policy)), EPERM);
	REFUSED(setsockopt(tcp, SOL_SOCKET, SO_ATTACH_FILTER, policy, 16), EPERM);
	REFUSED(setsockopt(tcp, SOL_SOCKET, SO_ZEROCOPY, policy, 4), EPERM);
	REFUSED(setsockopt(udp, IPPROTO_UDP, 100 /* UDP_ENCAP */, policy, 4), EPERM);
}

static void connect_to(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	bool is_abstract = name[0] == '@';
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (len >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, name, len);
	if (is_abstract)
		address.sun_path[0] = '\0';
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + !is_abstract);
	if (connect(fd, (struct sockaddr *)&address, size) != -1)
		fail("'%s' answered", name);
	else if (errno != ECONNREFUSED && errno != ENOENT && errno != EPERM)
		fail("'%s': %s", name, strerror(errno));
	close(fd);
}

/* The arguments are sockets that somebody on the host listens on; @ begins an abstract one. */
static void host_sockets(int argc, char **argv)
{
	const char *const always[] = {
		"/run/docker.sock",     "/var/run/docker.sock", "/run/dbus/system_bus_socket",
		"/run/systemd/private", "@/tmp/.X11-unix/X0",   "/dev/log"
	};

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		connect_to(always[i]);
	for (int i = 0; i < argc; i++)
		connect_to(argv[i]);
}

static void dial(int type, const char *address, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	bool is_v6 = inet_pton(AF_INET, address, &v4.sin_addr) != 1;
	const struct sockaddr *to = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
	socklen_t size = is_v6 ? sizeof(v6) : sizeof(v4);
	char byte = 0;

	if (is_v6)
		inet_pton(AF_INET6, address, &v6.sin6_addr);
	int fd = socket(is_v6 ? AF_INET6 : AF_INET, type | SOCK_NONBLOCK, 0);
	if (connect(fd, to, size) != -1)
		fail("connect to %s: it worked", address);
	else if (errno != ENETUNREACH && errno != EPERM && errno != EACCES &&
		 errno != EADDRNOTAVAIL)
		fail("connect to %s: %s", address, strerror(errno));
	if (type == SOCK_DGRAM && sendto(fd, &byte, 1, 0, to, size) != -1)
		fail("a packet to %s was sent", address);
	close(fd);
}

static void dial_out(int argc, char **argv)
{
	const char *const addresses[] = { "1.1.1.1",
					  "8.8.8.8",
					  "10.0.0.1",
					  "192.168.0.1",
					  "169.254.169.254",
					  "172.17.0.1",
					  "2606:4700:4700::1111",
					  "fd00:ec2::254",
					  "::ffff:1.1.1.1" };

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		dial(SOCK_STREAM, addresses[i], 443);
		dial(SOCK_DGRAM, addresses[i], 53);
	}
	REFUSED(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), EPERM);
	REFUSED(socket(AF_INET, SOCK_RAW, IPPROTO_RAW), EPERM);
	REFUSED(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), EPERM, EACCES);
	REFUSED(socket(AF_INET, 10 /* SOCK_PACKET */, 768), EPERM);
}

static void resolve(int argc, char **argv)
{
	struct addrinfo *found = NULL;
	struct timespec start, end;

	(void)argc;
	(void)argv;
	clock_gettime(CLOCK_MONOTONIC, &start);
	if (getaddrinfo("example.com", "443", NULL, &found) == 0)
		fail("a name was resolved");
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (end.tv_sec - start.tv_sec > 1)
		fail("it took %ld s", (long)(end.tv_sec - start.tv_sec));
}

const struct probe socket_probes[] = {
	{ "D060", families, HARMLESS },  { "D062", dirty_halves, false },
	{ "D064", upper_layers, false }, { "D076", host_sockets, HARMLESS },
	{ "D079", dial_out, false },     { "D080", resolve, false },
	{ NULL, NULL, false },
};
