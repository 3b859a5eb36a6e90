package tracer

import (
	"strings"
	"testing"

	"github.com/rdmaradar/rdmaradar/bpf"
)

const someSymbols = `ffffffff81000000 T _stext
0000000000000000 t hidden_by_kptr_restrict
ffffffffc0a4b0f0 t rxe_post_send	[rdma_rxe]
ffffffffc0a4b0f0 d not_a_function	[rdma_rxe]
ffffffffc0a4c2a0 t rxe_poll_cq	[rdma_rxe]
ffffffffc0712340 t ib_drain_qp_done	[ib_core]
not a line of symbols
ffffffffc0
`

func TestReadSymbols(t *testing.T) {
	const send, poll = 0xffffffffc0a4b0f0, 0xffffffffc0a4c2a0
	found, err := readSymbols(strings.NewReader(someSymbols), []string{"ib_drain_qp_done", "hidden_by_kptr_restrict", "no_such"},
		map[uint64]bool{send: true, poll: true, 0: true, 1: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.addresses) != 1 || found.addresses["ib_drain_qp_done"] != 0xffffffffc0712340 {
		t.Errorf("addresses %x", found.addresses)
	}
	if len(found.names) != 2 || found.names[send] != (kernelSymbol{"rxe_post_send", "rdma_rxe"}) {
		t.Errorf("names %v", found.names)
	}
	d, ok := found.driver(bpf.KverbsDriverVerbs{PostSend: send, PollCq: poll})
	if !ok || d.module != "rdma_rxe" || d.functions != [numVerbs]string{"rxe_post_send", "", "", "rxe_poll_cq"} {
		t.Errorf("driver %v %v", d, ok)
	}
	if _, ok := found.driver(bpf.KverbsDriverVerbs{PostSend: 2, PollCq: poll}); ok {
		t.Error("a driver whose post_send has no name is known")
	}
}

func FuzzReadSymbols(f *testing.F) {
	f.Add(someSymbols)
	f.Add("1 t a\n\x00 \xff")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := readSymbols(strings.NewReader(text), []string{"a"}, map[uint64]bool{1: true})
		if err == nil && (len(found.addresses) > 1 || len(found.names) > 1) {
			t.Errorf("found more than was asked for: %v", found)
		}
	})
}
