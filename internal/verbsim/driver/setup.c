/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices, Completion Queues and Shared Receive Queues, made through the
 * exported functions of libibverbs as any program makes them. Only the device
 * itself comes from the provider: ibv_get_device_list knows kernel devices.
 */
#include "driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void die(const char *what, const char *name, const char *why)
{
	fprintf(stderr, "verbsim: %s %s: %s\n", what, name, why);
	exit(1);
}

void driver_open(struct driver *d)
{
	verbsim_api_fn api;

	pthread_mutex_init(&d->mutex, NULL);
	d->provider = dlopen(d->opt.provider, RTLD_NOW);
	if (!d->provider)
		die("loading the provider", d->opt.provider, dlerror());
	api = (verbsim_api_fn)dlsym(d->provider, "verbsim_api");
	if (!api)
		die("loading the provider", d->opt.provider, "it has no function verbsim_api");
	d->api = api();
	book_open(&d->book, &d->opt);
}

struct device *device_open(struct driver *d, const char *name, int check_pointers)
{
	struct device *dev = calloc(1, sizeof(*dev));
	struct verbsim_config config = {
		.rate_bps = (uint64_t)(d->opt.rate_gbps * 1e9),
		.latency_ns = (uint64_t)(d->opt.latency_us * 1000),
		.first_qpn = FIRST_QPN,
		.check_pointers = check_pointers,
		.overtake_ns = (uint64_t)(d->opt.overtake_us * 1000),
	};
	char err[512] = "";

	if (!dev || d->ndevs == MAX_DEVICES)
		die("opening", name, "out of memory");
	snprintf(dev->name_buf, sizeof(dev->name_buf), "%s", name);
	dev->name = config.name = dev->name_buf;
	dev->rate_bps = config.rate_bps;
	dev->ibdev = d->api->device_new(&config, err, sizeof(err));
	if (!dev->ibdev)
		die("making", name, err);
	dev->ctx = ibv_open_device(dev->ibdev);
	if (!dev->ctx)
		die("ibv_open_device", name, strerror(errno));
	dev->pd = ibv_alloc_pd(dev->ctx);
	dev->buffer = calloc(1, BUFFER_BYTES);
	if (!dev->pd || !dev->buffer)
		die("ibv_alloc_pd", name, strerror(errno));
	dev->mr = ibv_reg_mr(dev->pd, dev->buffer, BUFFER_BYTES,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!dev->mr)
		die("ibv_reg_mr", name, strerror(errno));
	/* Programs exchange addresses with their peers before they make queues. */
	if (d->ndevs == 0)
		sleep_ns(d->opt.connect_ms * 1000000ull);
	d->devs[d->ndevs++] = dev;
	return dev;
}

struct completion_queue *cq_open(struct driver *d, struct device *dev, uint32_t entries,
				 bool shared)
{
	struct completion_queue *cq = calloc(1, sizeof(*cq));

	if (!cq || d->ncqs == sizeof(d->cqs) / sizeof(d->cqs[0]))
		die("ibv_create_cq", dev->name, "too many");
	cq->extended = d->opt.ext_poll;
	cq->cq = cq->extended ? create_extended_cq(dev, entries, d->opt.no_qp_num)
			      : ibv_create_cq(dev->ctx, (int)entries, NULL, NULL, 0);
	if (!cq->cq)
		die("ibv_create_cq", dev->name, strerror(errno));
	cq->dev = dev;
	cq->due = shared ? NULL : d->api->due(cq->cq);
	/* Programs hand in memory with old contents; what is not written must not be read. */
	memset(cq->wc, 0xa5, sizeof(cq->wc));
	d->cqs[d->ncqs++] = cq;
	return cq;
}

struct shared_recv *srq_open(struct driver *d, struct device *dev, uint32_t depth)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = depth, .max_sge = 1 } };
	struct shared_recv *s = calloc(1, sizeof(*s));

	if (!s || d->srq)
		die("ibv_create_srq", dev->name, "one is all this program keeps books of");
	s->srq = ibv_create_srq(dev->pd, &attr);
	if (!s->srq)
		die("ibv_create_srq", dev->name, strerror(errno));
	s->dev = dev;
	s->depth = depth;
	d->srq = s;
	return s;
}

static void device_close(struct driver *d, struct device *dev)
{
	ibv_dereg_mr(dev->mr);
	ibv_dealloc_pd(dev->pd);
	ibv_close_device(dev->ctx);
	d->api->device_put(dev->ibdev);
	free(dev->buffer);
}

/* Everything in the order that verbs demands. The structs stay for the truth. */
void driver_close(struct driver *d)
{
	for (struct queue *q = d->queues; q; q = q->next)
		if (q->qp)
			queue_destroy(d, q);
	if (d->srq) {
		ibv_destroy_srq(d->srq->srq);
		d->srq->n.recv_discarded = get(&d->srq->outstanding);
		d->srq->outstanding = 0;
	}
	for (uint32_t i = 0; i < d->ncqs; i++)
		ibv_destroy_cq(d->cqs[i]->cq);
	for (uint32_t i = 0; i < d->ndevs; i++)
		device_close(d, d->devs[i]);
}
