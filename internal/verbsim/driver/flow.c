/* SPDX-License-Identifier: Apache-2.0 */
#include "flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void flow_init(struct driver *d, struct flow *f, struct queue *q)
{
	const struct options *o = &d->opt;

	*f = (struct flow){
		.q = q,
		.chain = o->chain,
		.limit = q->depth,
		.op = o->op,
		.last_op = o->op,
		.size = o->size,
		.sges = 1,
		.credit = UINT64_MAX,
		.wr_id_period = o->wr_ids,
		.evict_post = o->evict_post,
	};
}

/* Pages that are shared keep their contents when they are taken out of the page table. */
static void *evictable(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void allocate(struct flow *f)
{
	size_t bytes;

	f->longest = f->longest > f->chain ? f->longest : f->chain;
	bytes = f->longest * sizeof(*f->wrs);
	f->wrs = f->evict_post ? evictable(bytes) : calloc(1, bytes);
	f->sgl = calloc((size_t)f->longest * f->sges + 1, sizeof(*f->sgl));
	if (f->wrs && f->sgl)
		return;
	fprintf(stderr, "verbsim: a chain of %u: out of memory\n", f->longest);
	exit(1);
}

static uint64_t wr_id(const struct flow *f, uint32_t i)
{
	uint32_t n;

	switch (f->wr_ids) {
	case WR_ID_CONSTANT:
		return f->wr_id_base;
	case WR_ID_SLOT:
		return f->wr_id_base + f->posts % NCCL_SLOTS;
	default:
		n = f->q->head + i;
		return f->wr_id_base + (f->wr_id_period ? n % f->wr_id_period : n);
	}
}

/* The size in parts that differ, so that a wrong sum is seen. */
static void spread(struct flow *f, struct ibv_sge *sgl)
{
	uint64_t left = f->size;

	for (uint32_t i = 0; i < f->sges; i++) {
		uint64_t part = i + 1 == f->sges ? left : f->size * (i + 1) / (f->sges * f->sges);

		sgl[i] = (struct ibv_sge){ (uintptr_t)f->q->dev->buffer, (uint32_t)part,
					   f->q->dev->mr->lkey };
		left -= part;
	}
}

static void address(struct flow *f, struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		if (f->ah) {
			wr->wr.ud.ah = f->ah;
			wr->wr.ud.remote_qpn = f->remote_qpn;
			wr->wr.ud.remote_qkey = 0x11111111;
		}
		return;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->sg_list->length = 8;
		wr->wr.atomic.remote_addr = 0x10000000;
		wr->wr.atomic.rkey = 0x1234;
		return;
	default:
		wr->wr.rdma.remote_addr = 0x10000000;
		wr->wr.rdma.rkey = 0x1234;
	}
}

void flow_build(struct flow *f, uint32_t n, bool close)
{
	if (!f->wrs)
		allocate(f);
	for (uint32_t i = 0; i < n; i++) {
		struct ibv_send_wr *wr = &f->wrs[i];
		bool last = i + 1 == n;
		bool signal = f->signal_every ? (f->q->head + i + 1) % f->signal_every == 0 : last;

		*wr = (struct ibv_send_wr){
			.wr_id = wr_id(f, i),
			.next = last ? NULL : wr + 1,
			.sg_list = &f->sgl[i * f->sges],
			.num_sge = (int)f->sges,
			.opcode = last ? f->last_op : f->op,
			.send_flags = (signal || (last && close)) ? IBV_SEND_SIGNALED : 0,
			.imm_data = 0x01020304,
		};
		if (f->q->sig_all)
			wr->send_flags = 0;
		spread(f, wr->sg_list);
		address(f, wr);
	}
}

bool flow_fits(const struct flow *f)
{
	return f->posts < f->credit && f->q->head - f->q->tail + f->chain <= f->limit;
}

struct single_post {
	struct driver *d;
	struct flow *f;
	uint32_t accepted;
	int err;
};

static void *post_single(void *argument)
{
	struct single_post *p = argument;

	p->accepted = post_send(p->d, p->f->q, p->f->wrs, p->f->chain, &p->err);
	return NULL;
}

/* Posts in a thread of its own, which does nothing else. */
static uint32_t post_apart(struct driver *d, struct flow *f, int *err)
{
	struct single_post p = { .d = d, .f = f };
	pthread_t thread;

	*err = pthread_create(&thread, NULL, post_single, &p);
	if (*err)
		return 0;
	pthread_join(thread, NULL);
	*err = p.err;
	return p.accepted;
}

void flow_post(struct driver *d, struct flow *f)
{
	bool evicts = f->posts + 1 == f->evict_post;
	uint32_t accepted;
	int err;

	if (d->opt.refuse_every && f->posts % d->opt.refuse_every == d->opt.refuse_every - 1)
		queue_refuse(d, f->q);
	flow_build(f, f->chain, false);
	if (evicts)
		f->q->evict = f->chain * sizeof(*f->wrs);
	accepted = evicts && d->opt.evict_apart ? post_apart(d, f, &err)
						: post_send(d, f->q, f->wrs, f->chain, &err);
	if (accepted != f->chain)
		fail(d, "ibv_post_send on 0x%x: %s", f->q->qpn, strerror(err));
	f->posts++;
}

void flow_free(struct flow *f)
{
	if (f->wrs && f->evict_post)
		munmap(f->wrs, f->longest * sizeof(*f->wrs));
	else
		free(f->wrs);
	free(f->sgl);
}
