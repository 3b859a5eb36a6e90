/* SPDX-License-Identifier: Apache-2.0 */

/* Sends messages over one SMC connection from one address to another, each answered
 * before the next. Both addresses are of this machine. The kernel makes it a TCP
 * connection where SMC finds no device: nothing here tells.
 *
 *     smc FROM TO COUNT BYTES */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* linux/socket.h, of which the C library has the number only in newer releases. */
#ifndef AF_SMC
#define AF_SMC 43
#endif

#define PORT 4003
#define MAX_BYTES 65536
#define PATIENCE_SECONDS 30

static void check(int failed, const char *what)
{
	if (failed) {
		perror(what);
		exit(1);
	}
}

static struct sockaddr_in address_of(const char *text, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	check(inet_pton(AF_INET, text, &address.sin_addr) != 1, text);
	return address;
}

static int bound(const char *text, int port)
{
	struct timeval patience = { .tv_sec = PATIENCE_SECONDS };
	struct sockaddr_in own = address_of(text, port);
	int s = socket(AF_SMC, SOCK_STREAM, 0);

	check(s < 0, "socket(AF_SMC)");
	check(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), "SO_RCVTIMEO");
	check(bind(s, (struct sockaddr *)&own, sizeof(own)), "bind");
	return s;
}

/* One message from one socket to the other. */
static void pass(int from, int to, size_t bytes)
{
	static char out[MAX_BYTES], in[MAX_BYTES];

	check(send(from, out, bytes, 0) != (ssize_t)bytes, "send");
	check(recv(to, in, bytes, MSG_WAITALL) != (ssize_t)bytes, "recv");
}

int main(int argc, char **argv)
{
	if (argc != 5 || atol(argv[4]) < 1 || atol(argv[4]) > MAX_BYTES) {
		fprintf(stderr, "usage: smc FROM TO COUNT BYTES (up to %d)\n", MAX_BYTES);
		return 2;
	}
	struct sockaddr_in peer = address_of(argv[2], PORT);
	int listener = bound(argv[2], PORT), client = bound(argv[1], 0);
	size_t bytes = atol(argv[4]);

	check(listen(listener, 1), "listen");
	check(connect(client, (struct sockaddr *)&peer, sizeof(peer)), "connect");
	int server = accept(listener, NULL, NULL);
	check(server < 0, "accept");
	for (int i = 0; i < atoi(argv[3]); i++) {
		pass(client, server, bytes);
		pass(server, client, bytes);
	}
	printf("%s messages of %zu bytes each way\n", argv[3], bytes);
	return close(client) || close(server) || close(listener);
}
