/* SPDX-License-Identifier: Apache-2.0 */

/* Registers memory, in numbers and sizes that a test can count.
 *
 *     regions DEVICE
 *
 * Registers REGIONS regions of UNIT, 2 UNIT, … bytes and deregisters the first
 * RELEASED of them; fails to register memory that is not there FAILED times; and
 * asks the kernel to register a dma-buf of UNIT bytes, whether or not the provider
 * offers that. Prints what came of it, and stays. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../program.h"

#define REGIONS 12
#define RELEASED 4
#define FAILED 3
#define UNIT 16384

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* A dma-buf of memory of this process, -1 on kernels that have no such. */
static int make_dmabuf(void)
{
	int memory = memfd_create("regions", MFD_ALLOW_SEALING);
	int device = open("/dev/udmabuf", O_RDWR);
	struct udmabuf_create create = { .memfd = memory, .size = UNIT };

	if (memory < 0 || device < 0 || ftruncate(memory, UNIT) ||
	    fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK))
		return -1;
	return ioctl(device, UDMABUF_CREATE, &create);
}

/* Returns 0 or why it failed. The last argument is of newer libraries. */
static int register_dmabuf(struct ibv_pd *pd)
{
	static char region[512]; /* a struct verbs_mr */
	int (*command)(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int, void *, void *) =
		dlsym(RTLD_DEFAULT, "ibv_cmd_reg_dmabuf_mr");

	if (!command) {
		fprintf(stderr, "libibverbs has no ibv_cmd_reg_dmabuf_mr\n");
		exit(1);
	}
	return command(pd, 0, UNIT, 0, make_dmabuf(), IBV_ACCESS_LOCAL_WRITE, region, NULL);
}

int main(int argc, char **argv)
{
	struct ibv_mr *regions[REGIONS];
	size_t whole = (size_t)UNIT * REGIONS;

	if (argc != 2) {
		fprintf(stderr, "usage: regions DEVICE\n");
		return 2;
	}
	struct ibv_pd *pd = check(ibv_alloc_pd(open_device(argv[1])), "ibv_alloc_pd");
	char *memory =
		mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *nothing = mmap(NULL, UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long long began = now_ns();

	for (int i = 0; i < REGIONS; i++)
		regions[i] = check(ibv_reg_mr(pd, memory, (size_t)UNIT * (i + 1),
					      IBV_ACCESS_LOCAL_WRITE),
				   "ibv_reg_mr");
	for (int i = 0; i < FAILED; i++) {
		if (ibv_reg_mr(pd, nothing, UNIT, IBV_ACCESS_LOCAL_WRITE)) {
			fprintf(stderr, "memory that is not there was registered\n");
			return 1;
		}
	}
	int failed = errno;
	int dmabuf = register_dmabuf(pd);
	long long registered = now_ns();

	for (int i = 0; i < RELEASED; i++)
		if (ibv_dereg_mr(regions[i])) {
			perror("ibv_dereg_mr");
			return 1;
		}
	printf("failed %d dmabuf %d registered %lld released %lld\n", failed, dmabuf,
	       registered - began, now_ns() - registered);
	fflush(stdout);
	pause();
	return 0;
}
