package provider

import "debug/elf"

// Drivers hand their functions to libibverbs in tables, struct verbs_context_ops
// (rdma-core, libibverbs/driver.h). It grows with most releases, but has its
// members in alphabetical order, with always the same ones from poll_cq on:
//
//	poll_cq, post_recv, post_send, post_srq_ops, post_srq_recv
//
// A driver may have several tables: one with its functions, and others for versions
// of the device, of which mlx5 and mthca have some with poll_cq alone. There all
// else is 0.

// tableAddresses are the addresses of functions of a driver in a file, 0 for none.
type tableAddresses [PollCQ + 1]uint64

// member is the size of a member of a table.
const member = 8

// isDriver reports whether the functions stand in tables of the file: post_recv and
// post_send one after the other, and before them poll_cq, or else that alone in
// another table, whose device then has it instead. It clears those for Shared Receive Queues when they are not beside
// the others: a driver that has none leaves what libibverbs has in its place.
func (a *analysis) isDriver(at *tableAddresses) bool {
	if at[PollCQ] == 0 || at[PostSend] == 0 || at[PostRecv] == 0 {
		return false
	}
	var polls, sends, shared bool
	a.eachPointer(func(where, pointer uint64) {
		switch pointer {
		case at[PollCQ]:
			polls = polls || a.isAlone(where)
		case at[PostSend]:
			poll := a.pointer(where - 2*member)
			if a.pointer(where-member) != at[PostRecv] || poll != 0 && !a.isFunction(poll) {
				return
			}
			sends = true
			polls = polls || poll == at[PollCQ]
			shared = shared || a.pointer(where+2*member) == at[PostSRQRecv]
		}
	})
	if !shared {
		at[PostSRQRecv] = 0
	}
	return polls && sends
}

// isAlone reports whether what may be poll_cq is in a table without the functions
// that post. Around it is nothing but functions and 0, as far as the table goes in
// the smallest release that may be linked in.
func (a *analysis) isAlone(where uint64) bool {
	const before, posts, after = 32, 4, 16
	for i := uint64(1); i <= after; i++ {
		if next := a.pointer(where + i*member); next != 0 && (i <= posts || !a.isFunction(next)) {
			return false
		}
	}
	for i := uint64(1); i <= before; i++ {
		if last := a.pointer(where - i*member); last != 0 && !a.isFunction(last) {
			return false
		}
	}
	return true
}

// eachPointer visits what may be pointers in the data of the file.
func (a *analysis) eachPointer(visit func(where, pointer uint64)) {
	for i := range a.img.loads {
		s := &a.img.loads[i]
		if s.flags&elf.PF_X != 0 {
			continue
		}
		for where := (s.vaddr + 7) &^ 7; where < s.vaddr+uint64(len(s.data)); where += 8 {
			if pointer := a.pointer(where); pointer != 0 {
				visit(where, pointer)
			}
		}
	}
}

// pointer is what is at an address once the file is loaded, less by how much it is
// moved; 0 for nothing and for what is of another file.
func (a *analysis) pointer(where uint64) uint64 {
	if r, ok := a.relocations[where]; ok {
		return r.address
	}
	word, _ := a.img.word(where)
	return word
}
