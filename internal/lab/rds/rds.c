/* SPDX-License-Identifier: Apache-2.0 */

/* Sends datagrams over RDS from one address to another, each answered before the
 * next. Both addresses are of this machine.
 *
 *     rds FROM TO COUNT BYTES */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* Ports of RDS are its own. */
#define PORT_FROM 4001
#define PORT_TO 4002
#define MAX_BYTES 65536
/* Connecting is part of the first datagram. */
#define PATIENCE_SECONDS 30

static void check(int failed, const char *what)
{
	if (failed) {
		perror(what);
		exit(1);
	}
}

static int bound(const char *address, int port)
{
	struct timeval patience = { .tv_sec = PATIENCE_SECONDS };
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(port) };
	int s = socket(AF_RDS, SOCK_SEQPACKET, 0);

	check(s < 0, "socket(AF_RDS)");
	check(inet_pton(AF_INET, address, &own.sin_addr) != 1, address);
	check(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), "SO_RCVTIMEO");
	check(bind(s, (struct sockaddr *)&own, sizeof(own)), "bind");
	return s;
}

/* One datagram from one socket to the other's address. */
static void pass(int from, int to, size_t bytes)
{
	static char out[MAX_BYTES], in[MAX_BYTES];
	struct sockaddr_in address;
	socklen_t length = sizeof(address);

	check(getsockname(to, (struct sockaddr *)&address, &length), "getsockname");
	check(sendto(from, out, bytes, 0, (struct sockaddr *)&address, length) != (ssize_t)bytes,
	      "sendto");
	check(recv(to, in, bytes, 0) != (ssize_t)bytes, "recv");
}

int main(int argc, char **argv)
{
	if (argc != 5 || atol(argv[4]) < 1 || atol(argv[4]) > MAX_BYTES) {
		fprintf(stderr, "usage: rds FROM TO COUNT BYTES (up to %d)\n", MAX_BYTES);
		return 2;
	}
	int from = bound(argv[1], PORT_FROM), to = bound(argv[2], PORT_TO);
	size_t bytes = atol(argv[4]);

	for (int i = 0; i < atoi(argv[3]); i++) {
		pass(from, to, bytes);
		pass(to, from, bytes);
	}
	printf("%s datagrams of %zu bytes each way\n", argv[3], bytes);
	return 0;
}
