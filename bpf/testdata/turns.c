/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/* Plays what a scheduler tells to absence.h, as a program of the machine that tests:
 * each argument is a change of threads, "us:cpu:from>to:state", or the waking of one,
 * "us:cpu:tid". Thread 1 is watched. Prints who had the CPU in its last absence, for
 * how many microseconds, and how many threads are on the lists of who waits. */

#include "kernel.h"
#include "libbpf/bpf_helpers.h"

#define bpf_ktime_get_ns play_now
#define bpf_get_smp_processor_id play_cpu
#define bpf_map_lookup_elem play_lookup
#define bpf_task_storage_get play_thread

static __u64 play_now(void);
static __u32 play_cpu(void);
static void *play_lookup(void *map, const void *key);
static void *play_thread(void *map, struct task_struct *task, void *value, __u64 flags);

#include "absence.h"

int printf(const char *format, ...);
int sscanf(const char *text, const char *format, ...);

#define CPUS 2

static struct schedule schedule;
static struct waiters wanted[CPUS];
static struct thread watched_one = { .poller = { .watched = 1, .tid = 1 } };
static __u64 now;
static __u32 cpu;

static __u64 play_now(void)
{
	return now;
}

static __u32 play_cpu(void)
{
	return cpu;
}

static void *play_lookup(void *map, const void *key)
{
	if (map == &waiting)
		return &wanted[*(const __u32 *)key % CPUS];
	return map == &schedules && *(const __u32 *)key == 0 ? &schedule : NULL;
}

static void *play_thread(void *map, struct task_struct *task, void *value, __u64 flags)
{
	return task->pid == 1 ? &watched_one : NULL;
}

/* As note_switch does, without the evidence of a late poller. */
static void change(struct task_struct *from, struct task_struct *to)
{
	count_turn(from, to);
	if (from->pid == 1)
		keep_leaving(&watched_one, from, to, false, now);
	if (to->pid == 1)
		keep_return(&watched_one, from, now);
}

int main(int count, char **steps)
{
	for (int i = 1; i < count; i++) {
		struct task_struct from = {}, to = {};

		if (sscanf(steps[i], "%llu:%u:%d>%d:%u", &now, &cpu, &from.pid, &to.pid,
			   &from.__state) < 3)
			return 2;
		/* A machine does not begin with a watched thread's wake-up. */
		now = (now + 1000000) * 1000;
		from.tgid = from.pid;
		to.tgid = to.pid;
		if (to.pid || from.__state)
			change(&from, &to);
		else
			keep_waking(&from);
	}
	const struct absence *last = &schedule.absences[((schedule.moves - 1) >> 1) % ABSENCES];
	printf("%d %llu %u", last->instead.tid, last->instead.ns / 1000, schedule.waits_for);
	return 0;
}
