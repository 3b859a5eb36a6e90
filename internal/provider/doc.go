// Package provider answers one question: which instruction in which file.
//
// Applications post and poll through function pointers that libibverbs copies
// from tables of the provider (libmlx5, librxe, …), so there is no exported
// symbol to probe. This package finds the libraries in processes and reads
// those tables statically, from files that are stripped:
//
//   - libibverbs is the file that defines the dynamic symbol verbs_set_ops.
//     The body of that function says which slot of a table becomes which
//     member of ibv_context, whatever the version of rdma-core.
//   - A provider is a file that imports verbs_set_ops. The second argument of
//     each call is the address of a table, and the relocations of the table
//     are the addresses of post_send, post_recv, post_srq_recv and poll_cq.
//   - A program with both linked in shows neither. Who knows of an object of one of
//     its processes can have the functions that this leads to analysed
//     (Finder.Linked).
//
// Inside the functions it finds the sites: the instructions that run once for
// each completion that poll_cq delivers and never on an empty poll, and those
// at which a post reports the work request that failed. What poll_cq returns is
// the number of completions, so a site is where that number certainly grows;
// values are followed through the machine code to tell where the completion
// and the CQ are at that moment.
//
// Everything read here belongs to somebody else and may be forged: sizes are
// bounded, loops are bounded, and what does not add up is an error.
//
// The results for x86-64 are executed with probes on real libraries. Those
// for arm64 are checked by table tests over real packages and have not been
// executed.
package provider
