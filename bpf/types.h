/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "kernel.h"

/* Everything that user space reads or writes. No packing: padding is spelled
 * out, so that Go reads the same bytes in place. */

/* A queue's in-flight work requests live in segments, allocated from one pool
 * as the queue fills and given back as it drains. A queue of depth d holds
 * d/32+1 segments at most, an idle one no more than one. */
#define SEGMENT_ENTRIES 32
#define SEGMENT_SHIFT 5
#define DIRECTORY_SLOTS 256
#define QUEUE_DEPTH (SEGMENT_ENTRIES * DIRECTORY_SLOTS)
/* The longest chain of one post, and the room kept for posts of other threads
 * that reserve at the same time. */
#define CHAIN_MAX 1024
#define DEPTH_LIMIT (QUEUE_DEPTH - 3 * CHAIN_MAX)
#define BATCH_MAX 256
#define SGE_MAX 32
/* How many entries the completions of one poll may look at. */
#define SEARCH_STEPS 32768

/* Durations are counted in this many buckets for a series, and more coarsely for
 * a queue: it has one bucket for four of a series. */
#define HISTOGRAM_BUCKETS 256
#define QUEUE_BUCKETS (HISTOGRAM_BUCKETS / 4)

#define NO_DEVICE 0xffff
#define DEVICES 128
/* Those below are for the names that sysfs has: what processes call their devices
 * cannot use them up. */
#define SYSFS_DEVICES 64

/* A consumer of verbs in the kernel takes the place of a process: the lower bits
 * of its tgid are its index, 0 for one whose name is not known. */
#define KERNEL_TGID 0x80000000u
#define KERNEL_INCARNATION 1
#define KERNEL_CONSUMERS 64
#define CONSUMER_NAME 56

/* The tid of what does not run on behalf of a thread: an interrupt, or an idle
 * CPU. The lower bits are the CPU's number. */
#define NO_THREAD 0x80000000u

/* The thread that a program runs on behalf of. */
struct caller {
	__u64 incarnation;
	__u64 start_ns; /* of the process, CLOCK_BOOTTIME */
	__u32 tgid;
	__u32 tid;
};

enum operation {
	OP_ATOMIC_CMP_AND_SWP = 5,
	OP_RDMA_READ = 4,
	OP_ATOMIC_FETCH_AND_ADD = 6,
	OP_ATOMIC_WRITE = 15,
	/* Of the kernel's consumers alone. */
	OP_REG_MR = 28,
	OP_DRAIN = 29,
	OP_RECV = 30,
	OP_UNKNOWN = 31,
};

/* In the order of time. STAGE_SUBMIT stands for post and queue where the return
 * of the post is not known, STAGE_COMPLETION for what follows and cannot be told
 * apart, see measure.h. */
enum stage {
	STAGE_POST,
	STAGE_QUEUE,
	STAGE_SUBMIT,
	STAGE_DEVICE,
	STAGE_COMPLETION,
	STAGE_POLL,
	STAGES,
};

/* What happened to a work request; the low byte of entry.word. Every entry
 * leaves ENTRY_LIVE once, by compare-and-swap, and whoever succeeds counts it. */
enum entry_state {
	ENTRY_FREE,
	ENTRY_WRITING,
	ENTRY_LIVE,
	ENTRY_DELIVERED,
	ENTRY_RETIRED,
	ENTRY_UNDONE,
	ENTRY_LOST,
};

#define ENTRY_SIGNALED (1 << 0)
#define ENTRY_RETURNS (1 << 1) /* the return of its post is probed */
#define ENTRY_BUILT                                                                                \
	(1 << 2) /* posted through ibv_qp_ex: as long as entries are probed, returns are */

struct entry {
	__u64 word; /* owner tag << 8 | state */
	__u64 wr_id;
	__u64 posted_ns;
	__u64 port_bytes; /* what the port had retired at the post */
	__u64 returned;	  /* tag << 32 | duration of the post call in ns, 0 until it returned */
	__u32 bytes;
	__u32 lkey; /* of the memory that it begins with, 0: not known */
	__u32 tid;
	__u16 cpu, outstanding;
	__u8 operation;
	__u8 flags;
	/* Another completion may be its own. Apart from flags: who finds a rival may
	 * be late, and then it is another entry that is not timed. */
	__u8 ambiguous;
	__u8 pad;
	__u32 skipped_at; /* the queue's completions when a later one was delivered first, 0: never
			   */
};
_Static_assert(sizeof(struct entry) == 64, "one cache line");
_Static_assert(QUEUE_DEPTH < 1 << 16, "entry.outstanding holds as many as there are entries");

struct segment {
	struct entry entries[SEGMENT_ENTRIES];
};

struct queue_key {
	__u64 incarnation;
	__u64 object; /* ibv_context of a QP, ibv_srq of an SRQ */
	__u32 tgid;
	__u32 qp_num; /* SRQ_NUMBER for an SRQ */
};
_Static_assert(sizeof(struct queue_key) == 24, "hashed as bytes");
#define SRQ_NUMBER 0xffffffff

enum queue_sync {
	QUEUE_UNSYNCED,
	QUEUE_SYNCED,
	QUEUE_NEW, /* no post seen yet */
};

enum queue_end {
	END_NONE,
	END_DESTROY,
	END_RESET,
	END_EXEC,
	END_EXIT,
	END_BROKEN,
	ENDS,
};

struct queue {
	struct queue_key key;
	__u64 generation; /* changes whenever the slot is used anew; 24 bits matter */
	__u64 head, tail;

	/* Conservation of work requests. */
	__u64 posted, delivered, retired, undone, lost;
	/* Completions of sends, those since the head last moved, and rejected posts. */
	__u64 completions, rejected;
	__u64 recv_posted, recv_completed, recv_empty;
	__u64 bytes, slow; /* payload of completed work requests, and how many were slow */

	__u64 start_ns;	   /* the process's start, CLOCK_BOOTTIME */
	__u64 aligned_ns;  /* when the QP was seen to become empty by INIT or RTR */
	__u64 activity_ns; /* the last post or send completion */
	__u64 delivered_ns;
	__u64 ended_ns;	    /* when the slot left the index, 0 while it is in use */
	__u64 overlap_mark; /* requests before it may overlap with another thread's, see rival.h */
	__u64 send_cq, recv_cq, srq;
	__u64 last_id;	    /* wr_id of the last signaled post */
	__u64 undecided_ns; /* the entry of the last post that counts in undecided */
	__u64 given_up_ns;  /* those of posts entered until then were given up */

	__u32 indexed;	   /* it is in queue_index, or was until it ended */
	__u32 last_poster; /* the thread that posted last */
	__u32 undecided;   /* requests that could not be read and may have been posted */
	__u32 outstanding, peak, peak_interval;
	__u32 limit;
	__u32 remote_qp;
	__u32 sync, end;
	__u32 increasing, in_order; /* the search for alignment, see sync.h */
	__u32 signaled_seen, sig_all;
	__u32 loss_epoch, loss_clock; /* when they were last looked at, see process.h */
	__u32 recv_known;
	__u16 device;
	__u8 port, qp_type;
	__u32 library;			/* whose functions it was last posted through */
	__u32 peer;			/* a number that user space gave it, 0: not known */
	__u32 durations[QUEUE_BUCKETS]; /* of the timed work requests, see traffic.h */
	__u32 directory[DIRECTORY_SLOTS];
};

/* A QP of a process of which the kernel told that it was connected, and that
 * nothing is outstanding on it: sends are refused before. */
struct connected_qp {
	__u64 aligned_ns;
	__u32 remote_qp;
	__u32 max_send_wr;
	__u8 signals_all;
	__u8 has_creation; /* the two above are known */
	__u8 port, qp_type;
	__u8 pad[4];
};
_Static_assert(sizeof(struct connected_qp) == 24, "no hidden padding");

struct cq_key {
	__u64 incarnation;
	__u64 cq;
	__u32 tgid;
	__u32 pad;
};

struct cq {
	__u64 short_poll_ns; /* entry of the last poll that came back with fewer than asked */
	__u64 polled_ns;     /* entry of the last poll that was seen to return */
	__u32 poller;	     /* the first thread whose poll was seen to return */
	__u32 shared;	     /* another one polls it, too */
	__u64 scheduled_ns;  /* of the kernel: when an interrupt last asked for a poll */
	__u64 paused_ns;     /* look_paused_ns of the thread at that short poll, see look.h */
	__u32 looker;	     /* the thread */
	__u32 pad;
};

struct device {
	char name[64];
	/* Bytes retired so far in each direction: [0] transmitted, [1] received. */
	__u64 bytes[2];
	/* Set by user space. */
	__u64 ns_per_gib; /* 0: the rate is not known */
	__u64 floor_ns;	  /* only a larger excess is reported */
	__u32 ignored;
	__u32 ready;  /* the name is written */
	__u32 learns; /* it has a baseline, see baseline.h */
	__u32 pad;
};

/* A kind of requests in one number: those of a device to one peer, of one operation
 * and of a size between two powers of 4. The peer is a number that user space gave
 * it, 0 where it is not known; the size class 0 is no bytes, n at least 4^(n-1). */
#define KIND_USED (1u << 31) /* no kind is 0 */
#define KIND_PEER_SHIFT 32
#define KIND_DEVICE_SHIFT 16
#define KIND_OPERATION_SHIFT 8
#define SIZE_CLASSES 17
_Static_assert(DEVICES < KIND_USED >> KIND_DEVICE_SHIFT, "the bit is not of a device");

/* The bucket BASELINE_BELOW is the one that the threshold is in, and each is as wide
 * as one of a queue. What is below the first or above the last is in those. */
#define BASELINE_BUCKETS 16
#define BASELINE_BELOW 5
#define FAST_SAMPLE 16
#define BASELINES 1024
#define BASELINES_SHIFT 10

/* The excess time of the requests of a kind. */
struct baseline {
	__u64 kind;	/* 0: of none */
	__u64 limit_ns; /* set by user space where it learned one, 0: the threshold */
	__u64 slow;	/* those over the limit */
	/* User space takes differences: a count wraps. Of those over the threshold
	 * every one is counted, of the others one in FAST_SAMPLE for all. */
	__u32 requests[BASELINE_BUCKETS];
};
_Static_assert(sizeof(struct baseline) == 88, "no hidden padding");

struct series_key {
	__u64 incarnation;
	__u32 tgid;
	__u16 device;
	__u8 operation;
	__u8 status;
};
_Static_assert(sizeof(struct series_key) == 16, "hashed as bytes");

/* Those that were timed are as many as there are in the buckets. */
struct series {
	__u64 completions, bytes;
	__u64 retired; /* unsignaled work requests that completed with them */
	__u64 sum_ns, min_ns, max_ns;
	__u64 slow, excess_ns;
	__u64 stage_ns[STAGES];
	__u64 buckets[HISTOGRAM_BUCKETS];
};

struct rejected_key {
	__u64 incarnation;
	__u32 tgid;
	__u32 error; /* errno, 0: the post was seen to fail, not what it returned */
	__u32 device;
	__u32 pad;
};

/* Global counters, one per CPU and index; exported by these names. */
enum counter {
	/* Conservation of completions. */
	COMPLETIONS_SEEN,
	COMPLETIONS_MATCHED,
	COMPLETIONS_RECEIVED,
	COMPLETIONS_UNSYNCED,
	COMPLETIONS_BEFORE_ATTACH,
	COMPLETIONS_DUPLICATE,
	COMPLETIONS_AMBIGUOUS,
	COMPLETIONS_UNMATCHED,
	/* Work requests that no queue counts. */
	WQES_POSTED_UNTRACKED,
	/* Work requests lost, by reason; the queue's own `lost` has them too,
	 * save for the untracked. */
	LOST_UNTRACKED,
	LOST_SKIPPED,
	LOST_CHAIN_TOO_DEEP,
	LOST_QUEUE_TOO_DEEP,
	LOST_NO_SEGMENT,
	LOST_READ_WR,
	LOST_RESYNC,
	/* Other losses. */
	LOSS_READ_QP,
	LOSS_READ_WC,
	LOSS_READ_CQ,
	LOSS_FAILED_POLL,
	LOSS_BATCH_TOO_DEEP,
	LOSS_SGE_TOO_DEEP,
	LOSS_READ_SGE,
	LOSS_EVENT_DROPPED,
	LOSS_CONTROL_DROPPED,
	LOSS_NO_THREAD_STATE,
	LOSS_NESTED_CALL,
	LOSS_RETURN_WITHOUT_ENTRY,
	LOSS_CQ_MAP_FULL,
	LOSS_SERIES_FULL,
	LOSS_REJECTED_FULL,
	LOSS_DEVICES_FULL,
	LOSS_PROCESSES_FULL,
	LOSS_BAD_WR,
	LOSS_RECEIVE_CHAIN,
	LOSS_CONTENDED,
	LOSS_SEARCH_TOO_LONG,
	LOSS_QUEUE_BROKEN,
	LOSS_CHAIN_NOT_BEGUN,
	LOSS_QP_NUMBER,
	LOSS_FUNCTIONS_FULL,
	LOSS_CONSUMERS_FULL,
	LOSS_ENTRY_NOT_SEEN,
	LOSS_READ_CQE,
	LOSS_CQE_SAMPLES,
	LOSS_SCHEDULES_FULL,
	LOSS_BASELINES_FULL,
	DUPLICATE_HITS,
	SLOW_USUAL,
	SLOW_SEEN,
	SLOW_BELOW_FLOOR,
	COUNTERS,
};

/* Kinds of posts, and the bits of library.returns. */
enum post_function {
	POST_SEND,
	POST_RECEIVE,
	POST_SHARED_RECEIVE,
	POST_FUNCTIONS,
};

#define SITES 1024
#define LIBRARIES 512
#define POLL_FUNCTIONS (LIBRARIES * 8)
#define OVERRIDES 2

/* The cookie of a probe: the library below, the function or site above. */
#define COOKIE_LIBRARY(cookie) ((__u32)(cookie))
#define COOKIE_INDEX(cookie) ((__u32)((cookie) >> 32))

enum site_place_kind {
	SITE_PLACE_NONE,
	SITE_PLACE_REGISTER,
	SITE_PLACE_MEMORY,
};

/* Where a number is at a site: in a register, or in memory at a register plus
 * an offset. */
struct site_place {
	__u32 kind;
	__u32 register_offset; /* in struct pt_regs */
	__s64 offset;
};

/* An address at a site: base + scale * counter + add. */
struct site_location {
	struct site_place base;
	struct site_place counter;
	__s64 scale;
	__s64 add;
};

/* A member of the completion that is not in memory yet. */
struct site_override {
	struct site_place from; /* none: the constant */
	__s64 constant;
	__u32 offset, size;
};

/* Where a completion site has the completion and its CQ. At a site of a post,
 * wc is the work request that was refused and cq the QP or SRQ. */
struct site {
	struct site_location wc, cq;
	struct site_location cqe; /* the entry of the CQ, of no kind where it is not known */
	struct site_override overrides[OVERRIDES];
	__u32 override_count;
	__u32 function; /* index of the poll_cq it belongs to, or enum post_function */
};

/* How a poll_cq is observed. */
struct poll_function {
	/* Counted while it is observed in both ways. */
	__u64 completions, empty_polls; /* of calls on which both agree */
	__u64 wrong_count, wrong_content;
	/* Set by user space. */
	__u64 since_ns; /* what was seen of earlier polls counts for nothing */
	__u32 returns;	/* the returns of calls that begin now deliver, not the sites */
	__u32 compares; /* what sites see of those calls is compared */
	__u32 looks;	/* entries are probed for their time alone, see look.h */
	__u32 inside;	/* calls that began and whose return will deliver */
};

/* The last time that a thread was not running. Noted once it has posted or polled. */
struct poller {
	__u32 watched;	 /* 1 + the index of its schedule; 0: not yet */
	__u32 tid;	 /* under which it has that: an exec may change its own */
	__u64 off_since; /* 0 while it runs */
	__u64 off_start, off_end;
	__u64 awaits_ns;	 /* when it last began to sleep until something happens */
	__u64 interrupted_ns[2]; /* since when, see interruption.h; 0: it is not */
};

/* Why a thread left its CPU. */
enum absence_kind {
	ABSENT_RUNNABLE, /* it could have run on */
	ABSENT_ASLEEP,
	ABSENT_HELD, /* by a signal, a debugger or the freezer */
};

/* Who ran on a CPU that another thread wanted, and for how long. */
struct stand_in {
	__u64 ns; /* 0: nobody */
	__u32 tid, tgid;
	char comm[16];
};
_Static_assert(sizeof(struct stand_in) == 32, "no hidden padding");

/* Those of one absence: where more took turns, who had the CPU for more than a fifth of
 * the time is among them. */
#define STAND_INS 4

struct stand_ins {
	struct stand_in of[STAND_INS];
};

struct absence {
	__u64 off_ns;
	__u64 wanted_ns; /* since when it wanted a CPU */
	__u64 on_ns;	 /* 0: it is away */
	/* Who ran in its place for the longest time that it wanted a CPU, known
	 * when it is back; until then the first. */
	struct stand_in instead;
	__u32 kind;
	__u16 off_cpu, on_cpu;
};
_Static_assert(sizeof(struct absence) == 64, "one cache line");

struct interruption {
	__u64 start_ns, end_ns;
};

#define ABSENCES 16
#define INTERRUPTIONS 8

/* So many threads are watched. */
#define SCHEDULES 512
/* What stands for the index of a schedule where there is none and will be none. */
#define NEVER_WATCHED (~0u)

/* When a thread was last away from its CPU. */
struct schedule {
	__u64 since_ns; /* what was before is not known */
	__u64 lost_ns;	/* when something was found to have gone by unseen */
	__u64 woken_ns;
	__u64 moves; /* how often it left its CPU or came back: it is away when odd */
	/* How often it was interrupted, and when an interrupt ended of which it is not
	 * known when it began. */
	__u64 interrupted, half_seen_ns;
	/* The turns of others since it wants a CPU, and until when they are counted.
	 * Who runs now is the last. */
	__u64 counted_ns;
	__u32 waits_for; /* 1 + the CPU that it wants, 0: none */
	__u32 pad;
	struct stand_ins stand_ins;
	struct stand_in last;
	struct absence absences[ABSENCES];
	struct interruption interruptions[INTERRUPTIONS];
};
_Static_assert(sizeof(struct schedule) == 1376, "no hidden padding");

/* The watched threads that want a CPU, 1 + the indexes of their schedules. Of one
 * that finds no room whoever ran first counts as who ran. */
#define WAITERS 16

struct waiters {
	__u32 schedules[WAITERS];
};
_Static_assert(sizeof(struct waiters) == 64, "one cache line");

enum scheduling_known {
	SCHEDULING_UNKNOWN,
	SCHEDULING_PARTLY, /* times are lower bounds */
	SCHEDULING_WHOLE,
};

/* What the scheduler did with a thread between a post and a delivery. */
struct scheduling {
	__u64 runnable_ns, asleep_ns, held_ns;
	__u64 interrupted_ns;
	__u64 longest_ns;
	__u32 switches, migrations;
	__u32 instead_tid, instead_tgid;
	char instead_comm[16];
	__u32 known;		/* enum scheduling_known */
	__u32 interrupts_known; /* interrupted_ns is all of it, else a lower bound */
};
_Static_assert(sizeof(struct scheduling) == 80, "no hidden padding");

struct library {
	__u64 attached_ns; /* when the last of its functions was attached; 0: nothing counts */
	/* Hits that another library kept for itself, and which: the same file
	 * through another path. */
	__u64 duplicates, keeper;
	__u64 suspicions; /* completions of synced queues that did not add up */
	__u64 slow;	  /* units that were reported as slow */
	__u64 busiest_ns; /* the most that one thread paid since the last look */
	/* Posts that were seen to fail by what they returned and passed no site. */
	__u64 unmarked[POST_FUNCTIONS];
	__u32 dropped; /* set before its probes are detached */
	__u32 returns; /* the posts whose returns are probed: bits of enum post_function */
	__u32 linked;  /* libibverbs is a part of it: of its QPs only the kernel tells */
	__u32 pad;
};

#define ELSEWHERE_UNKNOWN 0xffffffff

struct slow_event {
	__u64 incarnation;
	__u64 start_ns;
	__u64 context;
	__u64 cq;
	__u64 wr_id;
	__u64 posted_ns, delivered_ns;
	__u64 cqe_stamp; /* what the device wrote into the CQ entry, 0: not known */
	__u64 stage_ns[STAGES];
	__u64 bytes;
	__u64 busy_ns;
	__u64 threshold_ns;
	__u8 trace_id[16];
	__u8 span_id[8];
	__u32 tgid;
	__u32 qp_num;
	__u32 remote_qp;
	__u32 requests;
	__u32 outstanding;
	__u32 vendor_error;
	__u32 post_tid, post_cpu;
	__u32 poll_tid, poll_cpu;
	__u32 lkey; /* of the request that completed */
	/* For how much of STAGE_POLL, at least, the thread polled other CQs. */
	__u32 elsewhere_us; /* ELSEWHERE_UNKNOWN: not known */
	char poll_comm[16];
	struct scheduling poller, poster; /* of one thread it is in poller alone */
	__u16 device;
	__u8 port;
	__u8 qp_type;
	__u8 operation;
	__u8 status;
	__u8 known_stages;
	__u8 has_busy;
};
_Static_assert(sizeof(struct slow_event) % 8 == 0, "no tail padding");

struct cqe_sample {
	__u64 incarnation;
	__u64 stamp;   /* 0: the device gave none */
	__u64 seen_ns; /* when the completion was delivered */
	__u32 tgid;
	__u32 device;
};

enum control_kind {
	CONTROL_NEW_FILE,    /* an executable mapping of a file not seen before */
	CONTROL_NEW_CONTEXT, /* verbs_set_ops was called */
	CONTROL_NEW_PROCESS, /* the first queue of a process */
	CONTROL_EXEC,
	CONTROL_EXIT,
	CONTROL_NEW_FUNCTIONS, /* a combination of extended verbs not seen before */
};

struct control_event {
	__u64 incarnation;
	__u64 time_ns;
	__u32 kind;
	__u32 tgid;
	/* The name of the process that it happened in: its facts may not be there
	 * any more when this is read. */
	char comm[16];
};

struct process {
	__u64 incarnation;
	__u64 start_ns;
	__u32 loss_epoch; /* rises when something of the process went by unseen */
	__u32 pad;
};

struct file_key {
	__u64 inode;
	__u64 size;
	__u32 device;
	__u32 generation;
};

/* Layout of the value of OpenTelemetry's pinned map traces_ctx_v1. */
struct trace_context {
	__u8 trace_id[16];
	__u8 span_id[8];
};

struct entry_ref {
	__u64 generation;
	__u64 sequence;
};
