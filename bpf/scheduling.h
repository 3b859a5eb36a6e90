/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "interruption.h"
#include "loop.h"
#include "stand_in.h"
#include "verbs_reader.h"
#include "watched.h"

/* What the scheduler did with a thread between the post of a request and the
 * delivery of its completion. */

struct tally {
	const struct schedule *schedule;
	struct scheduling *sum;
	struct stand_ins *stand_ins;
	__u64 from_ns, to_ns;
	__u64 number; /* of absences, then of interruptions, not looked at */
	__u64 woken_ns;
	__u32 left;
	__u32 complete; /* earlier ones ended before */
};

/* How much of a time is in that of the request. */
static __always_inline __u64 share_of(const struct tally *state, __u64 start_ns, __u64 end_ns)
{
	if (start_ns < state->from_ns)
		start_ns = state->from_ns;
	if (end_ns > state->to_ns)
		end_ns = state->to_ns;
	return end_ns > start_ns ? end_ns - start_ns : 0;
}

/* Until when the thread waited for something else than a CPU. */
static __always_inline __u64 end_of_wait(const struct tally *state, const struct absence *absence)
{
	if (absence->on_ns)
		return absence->wanted_ns;
	if (absence->kind == ABSENT_RUNNABLE)
		return absence->off_ns;
	return state->woken_ns >= absence->off_ns ? state->woken_ns : state->to_ns;
}

static __always_inline void add_times(struct tally *state, const struct absence *absence,
				      __u64 on_ns)
{
	struct scheduling *sum = state->sum;
	__u64 wanted_ns = end_of_wait(state, absence);
	__u64 waited = share_of(state, absence->off_ns, wanted_ns);
	__u64 runnable = share_of(state, wanted_ns, on_ns);

	if (absence->kind == ABSENT_HELD)
		sum->held_ns += waited;
	else
		sum->asleep_ns += waited;
	sum->runnable_ns += runnable;
	if (waited + runnable > sum->longest_ns)
		sum->longest_ns = waited + runnable;
	struct stand_in instead = absence->instead;

	/* Of one that lasts only the first is told. */
	if (!absence->on_ns || instead.ns > runnable)
		instead.ns = runnable;
	add_turn(state->stand_ins, &instead);
}

/* Who had its CPU for the longest time of all absences. */
static __always_inline void tell_instead(struct tally *state)
{
	const struct stand_in *longest = longest_of(state->stand_ins);

	if (!longest->ns)
		return;
	state->sum->instead_tid = longest->tid;
	state->sum->instead_tgid = longest->tgid;
	__builtin_memcpy(state->sum->instead_comm, longest->comm, sizeof(longest->comm));
}

/* From the last absence backwards. */
LOOP_BODY(add_absence, struct tally)
{
	if (state->number == 0)
		state->complete = 1;
	if (state->complete || state->left == 0)
		return STOP;
	state->number--;
	state->left--;
	const struct absence *absence = &state->schedule->absences[state->number % ABSENCES];
	__u64 on_ns = absence->on_ns ? absence->on_ns : state->to_ns;

	state->complete = absence->off_ns <= state->from_ns;
	if (on_ns <= state->from_ns || absence->off_ns >= state->to_ns)
		return NEXT;
	state->sum->switches++;
	if (absence->on_ns && absence->on_cpu != absence->off_cpu)
		state->sum->migrations++;
	add_times(state, absence, on_ns);
	return NEXT;
}

/* From the last interruption backwards. */
LOOP_BODY(add_interruption, struct tally)
{
	if (state->number == 0)
		state->complete = 1;
	if (state->complete || state->left == 0)
		return STOP;
	state->number--;
	state->left--;
	const struct interruption *interruption =
		&state->schedule->interruptions[state->number % INTERRUPTIONS];

	state->complete = interruption->start_ns <= state->from_ns;
	state->sum->interrupted_ns += share_of(state, interruption->start_ns, interruption->end_ns);
	return NEXT;
}

/* Of one that is noted meanwhile, in place of the oldest, nothing is looked at. */
static __always_inline void add_interruptions(struct tally *state)
{
	const struct schedule *schedule = state->schedule;
	__u64 interrupted = *(volatile __u64 *)&schedule->interrupted;
	__u64 since_ns = interrupts_since_ns;

	state->number = interrupted;
	state->left = INTERRUPTIONS - 1 + some_zero;
	state->complete = some_zero;
	LOOP(add_interruption, state);
	if (*(volatile __u64 *)&schedule->interrupted != interrupted) {
		state->sum->interrupted_ns = 0;
		return;
	}
	state->sum->interrupts_known = state->complete && since_ns && since_ns <= state->from_ns &&
				       schedule->since_ns <= state->from_ns &&
				       schedule->half_seen_ns <= state->from_ns;
}

/* Sums up the time of the request that thread->event is of, for the thread that
 * took its completion or the one that posted it. Not static, see claim_request. */
__noinline int sum_scheduling(struct thread *thread, __u32 is_poster)
{
	if (!thread)
		return 0;
	struct slow_event *event = &thread->event;
	struct schedule *schedule = is_poster ? schedule_of_id(event->post_tid)
					      : schedule_of(thread);

	if (!schedule)
		return 0;
	__u64 since_ns = schedule->since_ns;
	__u64 moves = *(volatile __u64 *)&schedule->moves;
	struct tally state = {
		.schedule = schedule,
		.sum = is_poster ? &event->poster : &event->poller,
		.stand_ins = &thread->stand_ins,
		.from_ns = event->posted_ns,
		.to_ns = event->delivered_ns,
		.number = (moves + 1) >> 1,
		.woken_ns = schedule->woken_ns,
		.left = ABSENCES - 1 + some_zero,
		.complete = some_zero,
	};

	/* Who posted was watched before: this is another thread with its number. */
	if (is_poster && since_ns > state.from_ns)
		return 0;
	__builtin_memset(state.stand_ins, 0, sizeof(*state.stand_ins));
	LOOP(add_absence, &state);
	tell_instead(&state);
	bool whole = state.complete && since_ns <= state.from_ns &&
		     schedule->lost_ns <= state.from_ns;
	add_interruptions(&state);
	/* What was looked at may be that of later absences, or of another thread. */
	if (*(volatile __u64 *)&schedule->moves - moves > 1 || schedule->since_ns != since_ns)
		state.sum->known = SCHEDULING_UNKNOWN;
	else
		state.sum->known = whole ? SCHEDULING_WHOLE : SCHEDULING_PARTLY;
	return 0;
}

/* Adds what is known of both threads to thread->event. For one thread that posted
 * and polled it is in there once. */
static __always_inline void report_scheduling(struct thread *thread)
{
	struct slow_event *event = &thread->event;

	__builtin_memset(&event->poller, 0, sizeof(event->poller));
	__builtin_memset(&event->poster, 0, sizeof(event->poster));
	if (!watches_threads())
		return;
	sum_scheduling(thread, false);
	if (event->post_tid != event->poll_tid)
		sum_scheduling(thread, true);
}
