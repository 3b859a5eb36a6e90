/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, by the workload's own clock, for a test to reconcile with. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long ull;

struct name {
	const char *text;
	size_t where;
};

#define N(field) { #field, offsetof(struct counts, field) }

static const struct name names[] = {
	N(posted),	 N(signaled),		N(undone),	   N(rejected_posts),
	N(completions),	 N(unsignaled_retired), N(flushed),	   N(errors),
	N(discarded),	 N(recv_posted),	N(recv_undone),	   N(recv_completions),
	N(recv_flushed), N(recv_errors),	N(recv_discarded), N(send_bytes),
	N(read_bytes),	 N(recv_bytes),
};

#define NNAMES (sizeof(names) / sizeof(names[0]))

static const counter *field(const struct counts *n, size_t i)
{
	return (const counter *)((const char *)n + names[i].where);
}

static void sum(const struct driver *d, struct counts *total)
{
	memset(total, 0, sizeof(*total));
	for (const struct queue *q = d->queues; q; q = q->next)
		for (size_t i = 0; i < NNAMES; i++)
			add((counter *)field(total, i), get(field(&q->n, i)));
	for (size_t i = 0; d->srq && i < NNAMES; i++)
		add((counter *)field(total, i), get(field(&d->srq->n, i)));
}

static uint64_t total_outstanding(const struct driver *d)
{
	uint64_t n = 0;

	for (const struct queue *q = d->queues; q; q = q->next)
		n += queue_outstanding(q);
	return n;
}

static uint64_t total_recv_outstanding(const struct driver *d)
{
	uint64_t n = d->srq ? get(&d->srq->outstanding) : 0;

	for (const struct queue *q = d->queues; q; q = q->next)
		n += queue_recv_outstanding(q);
	return n;
}

static void polls(const struct driver *d, uint64_t *all, uint64_t *empty, uint64_t *delivered)
{
	*all = *empty = *delivered = 0;
	for (uint32_t i = 0; i < d->ncqs; i++) {
		*all += get(&d->cqs[i]->polls);
		*empty += get(&d->cqs[i]->empty);
		*delivered += get(&d->cqs[i]->delivered);
	}
}

/* CLOCK_REALTIME less CLOCK_MONOTONIC: the closest of several readings. */
static int64_t realtime_offset(void)
{
	uint64_t best = UINT64_MAX;
	int64_t offset = 0;

	for (int i = 0; i < 32; i++) {
		struct timespec ts;
		uint64_t before = now_ns(), after;

		clock_gettime(CLOCK_REALTIME, &ts);
		after = now_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		offset =
			(int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec - (int64_t)(before + best / 2);
	}
	return offset;
}

/* Everything polled is a send or a receive of some queue, and nothing is missing. */
bool books_balance(struct driver *d)
{
	uint64_t all, empty, delivered;
	struct counts n;

	sum(d, &n);
	polls(d, &all, &empty, &delivered);
	if (delivered != n.completions + n.recv_completions)
		fail(d, "%llu completions were polled and %llu are in the books", (ull)delivered,
		     (ull)(n.completions + n.recv_completions));
	for (const struct queue *q = d->queues; q; q = q->next)
		if (q->qp && !q->shared && queue_outstanding(q) != q->head - q->tail)
			fail(d, "0x%x has %llu requests outstanding by count and %u by name",
			     q->qpn, (ull)queue_outstanding(q), q->head - q->tail);
	return !d->failed;
}

static void write_counts(FILE *f, const struct counts *n)
{
	for (size_t i = 0; i < NNAMES; i++)
		fprintf(f, "\"%s\":%llu,", names[i].text, (ull)get(field(n, i)));
}

static const char *type_name(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC ? "rc" : type == IBV_QPT_UC ? "uc" : "ud";
}

static void write_queues(FILE *f, const struct driver *d)
{
	const char *comma = "";

	fprintf(f, "\"qps\":[");
	for (const struct queue *q = d->queues; q; q = q->next, comma = ",\n") {
		fprintf(f,
			"%s{\"device\":\"%s\",\"ctx\":%llu,\"qp_num\":%u,\"type\":\"%s\","
			"\"sq_sig_all\":%s,\"shared\":%s,\"depth\":%u,\"recv_depth\":%u,"
			"\"created_ns\":%llu,\"destroyed_ns\":%llu,\"counts\":{",
			comma, q->dev->name, (ull)(uintptr_t)q->dev->ctx, q->qpn,
			type_name(q->type), q->sig_all ? "true" : "false",
			q->shared ? "true" : "false", q->depth, q->recv_depth, (ull)q->created_ns,
			(ull)q->destroyed_ns);
		write_counts(f, &q->n);
		fprintf(f, "\"outstanding_at_end\":%llu,\"recv_outstanding_at_end\":%llu}}",
			(ull)queue_outstanding(q), (ull)queue_recv_outstanding(q));
	}
	fprintf(f, "],\n");
}

static void write_devices(FILE *f, const struct driver *d)
{
	fprintf(f, "\"devices\":[");
	for (uint32_t i = 0; i < d->ndevs; i++)
		fprintf(f, "%s{\"name\":\"%s\",\"ctx\":%llu,\"rate_bps\":%llu}", i ? "," : "",
			d->devs[i]->name, (ull)(uintptr_t)d->devs[i]->ctx,
			(ull)d->devs[i]->rate_bps);
	fprintf(f, "],\n");
}

static void write_request(FILE *f, const struct queue *q, const struct record *r)
{
	fprintf(f,
		"\"device\":\"%s\",\"ctx\":%llu,\"qp_num\":%u,\"wr_id\":%llu,\"op\":%u,"
		"\"status\":%u,\"size\":%llu,\"requests\":%u,\"post_ns\":%llu,"
		"\"completion_ns\":%llu,\"due_ns\":%llu}",
		q->dev->name, (ull)(uintptr_t)q->dev->ctx, q->qpn, (ull)r->wr_id, r->op, r->status,
		(ull)r->bytes, r->requests, (ull)r->post_before, (ull)r->poll_after, (ull)r->due);
}

static void write_spikes(FILE *f, const struct driver *d)
{
	const char *comma = "";

	fprintf(f, "\"spikes\":[");
	for (uint32_t i = 0; i < d->book.nspikes; i++) {
		const struct spike *s = &d->book.spikes[i];

		if (!s->done.poll_after)
			continue; /* the run ended before its request was posted */
		fprintf(f, "%s{\"delay_ns\":%llu,\"armed_ns\":%llu,", comma, (ull)s->delay_ns,
			(ull)s->armed_ns);
		write_request(f, s->q, &s->done);
		comma = ",\n";
	}
	fprintf(f, "],\n");
}

static void write_slow(FILE *f, const struct driver *d)
{
	uint64_t n = get(&d->book.slow_next), kept = n < MAX_SLOW ? n : MAX_SLOW;

	fprintf(f, "\"slow_total\":%llu,\"slow\":[", (ull)n);
	for (uint64_t i = 0; i < kept; i++) {
		fprintf(f, "%s{", i ? ",\n" : "");
		write_request(f, d->book.slow[i].q, &d->book.slow[i].r);
	}
	fprintf(f, "]\n");
}

static void write_body(FILE *f, struct driver *d)
{
	uint64_t all, empty, delivered;
	struct counts n;

	sum(d, &n);
	polls(d, &all, &empty, &delivered);
	fprintf(f, "{\"scenario\":\"%s\",\"pid\":%d,\"ok\":%s,", d->opt.scenario, getpid(),
		d->failed ? "false" : "true");
	fprintf(f, "\"start_ns\":%llu,\"end_ns\":%llu,\"monotonic_to_realtime_offset_ns\":%lld,",
		(ull)d->start_ns, (ull)d->finished_ns, (long long)realtime_offset());
	fprintf(f, "\"threshold_ns\":%llu,\"latency_ns\":%llu,\n\"counts\":{", (ull)d->book.slow_ns,
		(ull)(d->opt.latency_us * 1000));
	write_counts(f, &n);
	fprintf(f,
		"\"outstanding_at_end\":%llu,\"recv_outstanding_at_end\":%llu,\"polls\":%llu,"
		"\"empty_polls\":%llu,\"delivered\":%llu},\n",
		(ull)total_outstanding(d), (ull)total_recv_outstanding(d), (ull)all, (ull)empty,
		(ull)delivered);
	write_devices(f, d);
	write_queues(f, d);
	write_spikes(f, d);
	write_slow(f, d);
	fprintf(f, "}\n");
}

static bool keep_record(const struct record *r)
{
	return r->poll_after != 0;
}

/* Completed records only; those that never were are holes in the memory. */
static void write_records(FILE *f, struct driver *d)
{
	uint64_t n = get(&d->book.next);

	if (n > d->book.keep) {
		fail(d, "%llu completions do not fit into --max-records %llu", (ull)n,
		     (ull)d->book.keep);
		n = d->book.keep;
	}
	for (uint64_t i = 0; i < n; i++)
		if (keep_record(&d->book.records[i]))
			fwrite(&d->book.records[i], sizeof(struct record), 1, f);
}

/* Under its name only when it is whole. */
static int write_file(struct driver *d, const char *name, const char *suffix,
		      void (*body)(FILE *, struct driver *))
{
	char path[4096], tmp[4096 + 8];
	FILE *f;
	int bad;

	snprintf(path, sizeof(path), "%s%s", name, suffix);
	snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	f = fopen(tmp, "we");
	if (!f) {
		fprintf(stderr, "verbsim: writing %s: %s\n", tmp, strerror(errno));
		return -1;
	}
	setvbuf(f, NULL, _IOFBF, 1 << 20);
	body(f, d);
	bad = ferror(f);
	bad |= fclose(f);
	if (!bad && !rename(tmp, path))
		return 0;
	fprintf(stderr, "verbsim: writing %s: %s\n", path, strerror(errno));
	unlink(tmp);
	return -1;
}

int truth_write(struct driver *d, const char *suffix)
{
	int ret = 0;

	/* The records first: whoever waits for the truth finds both. */
	if (d->opt.truth_records)
		ret |= write_file(d, d->opt.truth_records, suffix, write_records);
	if (d->opt.truth)
		ret |= write_file(d, d->opt.truth, suffix, write_body);
	return ret;
}

/* The failure is a sentence of ours: no quotes, no control characters. */
void summary_print(struct driver *d)
{
	uint64_t all, empty, delivered;
	struct counts n;

	sum(d, &n);
	polls(d, &all, &empty, &delivered);
	printf("{\"scenario\":\"%s\",\"pid\":%d,\"ok\":%s,\"failure\":\"%s\",\"seconds\":%.3f,"
	       "\"requests\":%llu,\"undone\":%llu,\"completions\":%llu,\"unsignaled_retired\":%llu,"
	       "\"discarded\":%llu,\"outstanding_at_end\":%llu,\"recv_completions\":%llu,"
	       "\"flushed\":%llu,\"errors\":%llu,\"slow\":%llu,\"spikes\":%u,\"polls\":%llu,"
	       "\"empty_polls\":%llu}\n",
	       d->opt.scenario, getpid(), d->failed ? "false" : "true", d->failure,
	       (double)(d->finished_ns - d->start_ns) / 1e9, (ull)n.posted, (ull)n.undone,
	       (ull)n.completions, (ull)n.unsignaled_retired, (ull)n.discarded,
	       (ull)total_outstanding(d), (ull)n.recv_completions, (ull)n.flushed, (ull)n.errors,
	       (ull)get(&d->book.slow_next), d->book.nspikes, (ull)all, (ull)empty);
}
