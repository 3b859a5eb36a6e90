package provider

import "debug/elf"

// Drivers hand their functions to libibverbs in tables, struct verbs_context_ops
// (rdma-core, libibverbs/driver.h). It grows with most releases, but has its
// members in alphabetical order, with always the same ones from poll_cq on:
//
//	poll_cq, post_recv, post_send, post_srq_ops, post_srq_recv
//
// A driver may have several tables. What is 0 in one is in another.

// tableAddresses are the addresses of functions of a driver in a file, 0 for none.
type tableAddresses [PollCQ + 1]uint64

// isDriver reports whether the functions stand in tables of the file. It clears
// those for Shared Receive Queues when they are not beside the others: a driver
// that has none leaves what libibverbs has in its place.
func (a *analysis) isDriver(at *tableAddresses) bool {
	const member = 8
	var polls, sends, shared bool
	a.eachPointer(func(where, pointer uint64) {
		switch pointer {
		case at[PollCQ]:
			recv, send := a.pointer(where+member), a.pointer(where+2*member)
			polls = polls || recv == at[PostRecv] && send == at[PostSend] || recv == 0 && send == 0
		case at[PostSend]:
			if a.pointer(where-member) != at[PostRecv] {
				return
			}
			sends = true
			shared = shared || a.pointer(where+2*member) == at[PostSRQRecv]
		}
	})
	if !shared {
		at[PostSRQRecv] = 0
	}
	return polls && sends
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
