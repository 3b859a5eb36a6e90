/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* The few kernel types the programs need, instead of a generated vmlinux.h of
 * megabytes. Structures carry preserve_access_index, so that the loader
 * relocates every field to where the running kernel has it; only the members
 * that are read are named. */

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef _Bool bool;

/* Kinds of types that the helper declarations of libbpf name. */
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

_Static_assert(sizeof(__u64) == 8, "64-bit values are shared with user space");

#define true 1
#define false 0
#define NULL ((void *)0)

/* enum bpf_map_type and flags, include/uapi/linux/bpf.h. */
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PROG_ARRAY 3
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_MAP_TYPE_QUEUE 22
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_MAP_TYPE_TASK_STORAGE 29
#define BPF_F_NO_PREALLOC 1
#define BPF_F_MMAPABLE 1024
#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define BPF_RB_NO_WAKEUP 1
#define BPF_RB_FORCE_WAKEUP 2
#define BPF_RB_AVAIL_DATA 0

/* Registers at a uprobe and of a thread in a system call, the order of
 * arch/x86/include/asm/ptrace.h and arch/arm64/include/asm/ptrace.h. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#define ARG1(ctx) ((ctx)->di)
#define ARG2(ctx) ((ctx)->si)
#define ARG3(ctx) ((ctx)->dx)
#define ARG4(ctx) ((ctx)->cx)
#define ARG5(ctx) ((ctx)->r8)
#define RET(ctx) ((ctx)->ax)
#define STACK(ctx) ((ctx)->sp)
#define IP(ctx) ((ctx)->ip)
/* The stack pointer of the entry, seen from a return probe: the return address
 * is gone. */
#define RETURN_FRAME(ctx) ((ctx)->sp - 8)
#define SYSCALL(ctx) ((ctx)->orig_ax)
#define SYSCALL_NANOSLEEP 35
#define SYSCALL_CLOCK_NANOSLEEP 230
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	unsigned long regs[31];
	unsigned long sp, pc, pstate;
	unsigned long orig_x0;
	int syscallno;
};
#define ARG1(ctx) ((ctx)->regs[0])
#define ARG2(ctx) ((ctx)->regs[1])
#define ARG3(ctx) ((ctx)->regs[2])
#define ARG4(ctx) ((ctx)->regs[3])
#define ARG5(ctx) ((ctx)->regs[4])
#define RET(ctx) ((ctx)->regs[0])
#define STACK(ctx) ((ctx)->sp)
#define IP(ctx) ((ctx)->pc)
#define RETURN_FRAME(ctx) ((ctx)->sp)
#define SYSCALL(ctx) ((ctx)->syscallno)
#define SYSCALL_NANOSLEEP 101
#define SYSCALL_CLOCK_NANOSLEEP 115
#else
#error "this architecture is not supported"
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct signal_live {
	int counter;
};

struct signal_struct {
	struct signal_live live;
};

struct task_struct {
	void *stack;
	unsigned int __state;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	__u64 start_boottime;
	__u64 self_exec_id;
	char comm[16];
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	__s64 i_size;
	__u32 i_generation;
};

struct file {
	struct inode *f_inode;
};

struct vm_area_struct {
	unsigned long vm_flags;
	struct file *vm_file;
};

#pragma clang attribute pop
