/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices and the control interface. A device is made by hand, because there
 * is no kernel device to be found; libibverbs opens it without one when
 * verbs_device.sysfs is NULL (libibverbs/device.c, verbs_open_device).
 */
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void sim_uninit_device(struct verbs_device *vdev)
{
	struct sim_device *dev = (struct sim_device *)vdev;

	pthread_spin_destroy(&dev->lock);
	free(dev->qps);
	free(dev->heap);
	free(dev);
}

static const struct verbs_device_ops sim_device_ops = {
	.name = "verbsim",
	.alloc_context = sim_alloc_context,
	.uninit_device = sim_uninit_device,
};

static struct sim_device *alloc_device(void)
{
	struct sim_device *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	dev->qps = calloc(SIM_MAX_QPS, sizeof(*dev->qps));
	dev->heap = calloc(SIM_MAX_QPS, sizeof(*dev->heap));
	if (dev->qps && dev->heap && !pthread_spin_init(&dev->lock, PTHREAD_PROCESS_PRIVATE))
		return dev;
	free(dev->qps);
	free(dev->heap);
	free(dev);
	return NULL;
}

static void device_put(struct ibv_device *device)
{
	struct verbs_device *vdev = (struct verbs_device *)device;

	if (atomic_fetch_sub(&vdev->refcount, 1) == 1)
		sim_uninit_device(vdev);
}

static struct ibv_device *device_new(const struct verbsim_config *config, char *err, size_t errlen)
{
	struct sim_device *dev = alloc_device();
	struct ibv_device *device;

	if (!dev) {
		snprintf(err, errlen, "simulated device %s: out of memory", config->name);
		return NULL;
	}
	dev->rate_bps = config->rate_bps;
	dev->latency_ns = config->latency_ns;
	dev->first_qpn = config->first_qpn & SIM_QPN_MASK;
	dev->check_pointers = config->check_pointers;
	dev->overtake_ns = config->overtake_ns;
	dev->epoch = sim_now();
	dev->next_due = SIM_NEVER;
	dev->vdev.ops = &sim_device_ops;
	dev->vdev.refcount = 1;
	device = &dev->vdev.device;
	device->node_type = IBV_NODE_CA;
	device->transport_type = IBV_TRANSPORT_IB;
	snprintf(device->name, sizeof(device->name), "%s", config->name);
	snprintf(device->dev_name, sizeof(device->dev_name), "verbsim_%.32s", config->name);
	if (sim_check_layout(device, err, errlen)) {
		device_put(device);
		return NULL;
	}
	return device;
}

static void set_latency(struct ibv_device *device, uint64_t latency_ns)
{
	((struct sim_device *)device)->latency_ns = latency_ns;
}

static void set_stall(struct ibv_device *device, uint64_t stall_ns)
{
	((struct sim_device *)device)->stall_ns = stall_ns;
}

static int arm(struct ibv_qp *ibqp, const struct verbsim_effect *effect)
{
	struct sim_qp *qp = (struct sim_qp *)ibqp;
	int busy;

	pthread_spin_lock(&qp->sq_lock);
	busy = qp->effect_armed;
	if (!busy) {
		qp->effect = *effect;
		qp->effect_armed = 1;
	}
	pthread_spin_unlock(&qp->sq_lock);
	return busy ? EBUSY : 0;
}

static const uint64_t *due(struct ibv_cq *ibcq)
{
	return ((struct sim_cq *)ibcq)->due;
}

static const struct verbsim_api api = {
	.device_new = device_new,
	.device_put = device_put,
	.set_latency = set_latency,
	.set_stall = set_stall,
	.arm = arm,
	.due = due,
};

__attribute__((visibility("default"))) const struct verbsim_api *verbsim_api(void);

const struct verbsim_api *verbsim_api(void)
{
	return &api;
}
