/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control interface of the simulated provider: everything that is not
 * verbs. A program gets it with dlsym(handle, "verbsim_api").
 */
#ifndef VERBSIM_H
#define VERBSIM_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

/* A device as it should be; times are nanoseconds of CLOCK_MONOTONIC. */
struct verbsim_config {
	const char *name;    /* such as "sim0" */
	uint64_t rate_bps;   /* bits a second of the port and direction, 0: infinite */
	uint64_t latency_ns; /* from the last bit on the wire to the completion */
	uint32_t first_qpn;  /* queue pair numbers count from here */
	/*
	 * Read work requests through process_vm_readv before following a
	 * pointer, so that a hostile list is refused and does not crash. It costs
	 * a system call per request and is meant for hostile scenarios only.
	 */
	int check_pointers;
	/*
	 * Every fourth post waits for so long before it takes its queue, so that
	 * posts of other threads overtake it. Then the completions of sends carry
	 * the imm_data of their requests: the only way in which the program can
	 * tell whose they are when wr_ids repeat. An observer must not use it.
	 */
	uint64_t overtake_ns;
};

/* What happens to one work request, instead of success in time. */
struct verbsim_effect {
	uint32_t skip;	     /* requests of the queue that are posted before it */
	uint64_t delay_ns;   /* added to its latency */
	int never;	     /* it does not complete */
	uint32_t status;     /* enum ibv_wc_status, 0: success */
	uint32_t vendor_err; /* with status; bits below VERBSIM_VENDOR_RECV */
};

/*
 * Set in vendor_err of every failed receive. Of a failed completion only wr_id,
 * status, qp_num and vendor_err are valid (ibv_poll_cq(3)), so this bit is the
 * only way in which the program that knows the simulation can tell a failed
 * receive from a failed send. An observer must not use it.
 */
#define VERBSIM_VENDOR_RECV 0x8000u

/* The completions of the last poll whose due time is kept, see due. */
#define VERBSIM_DUE 1024

struct verbsim_api {
	/*
	 * A new device for ibv_open_device, or NULL with the reason in err: out of
	 * memory, or a libibverbs whose table of functions is not the compiled one.
	 */
	struct ibv_device *(*device_new)(const struct verbsim_config *config, char *err,
					 size_t errlen);
	/* Drops the device; it is freed when its last context is closed. */
	void (*device_put)(struct ibv_device *device);
	/* Changes the latency of what is posted from now on. */
	void (*set_latency)(struct ibv_device *device, uint64_t latency_ns);
	/* How long posts from now on keep their CPU before they ring the doorbell. */
	void (*set_stall)(struct ibv_device *device, uint64_t stall_ns);
	/* Arms one effect on the Send Queue; EBUSY while one is armed. */
	int (*arm)(struct ibv_qp *qp, const struct verbsim_effect *effect);
	/*
	 * When the completions of the last poll of this queue came to be, entry i
	 * for completion i mod VERBSIM_DUE. Meaningful for the only poller.
	 */
	const uint64_t *(*due)(struct ibv_cq *cq);
};

typedef const struct verbsim_api *(*verbsim_api_fn)(void);

#endif
