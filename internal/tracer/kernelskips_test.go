package tracer

import (
	"strings"
	"testing"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// Whatever program of the verbs is skipped, it is a loss of one kind; the second one
// on a return makes up for others, and a kprobe whose entry is skipped loses the call.
func TestEverySkipHasItsReason(t *testing.T) {
	spec, err := bpf.LoadKverbs()
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range spec.Programs {
		kind, function, _ := strings.Cut(program.SectionName, "/")
		timed := function == "post_send" || function == "poll_cq"
		verb := timed || function == "post_recv" || function == "post_srq_recv"
		var want skips
		switch {
		case strings.HasSuffix(name, "_again"):
		case verb && kind == "fentry":
			want = skips{entries: 3}
		case verb && kind == "kprobe" && timed:
			want = skips{entries: 3, calls: 3}
		case verb && kind == "kprobe":
			want = skips{entries: 3}
		case timed && (kind == "fexit" || kind == "kretprobe"):
			want = skips{returns: 3}
		default:
			want = skips{others: 3}
		}
		var got skips
		got.add(name, 3)
		if got != want {
			t.Errorf("%s in %s counts as %+v, want %+v", name, program.SectionName, got, want)
		}
	}
}

func TestSumsOfSkips(t *testing.T) {
	a, b := skips{entries: 1, returns: 5, calls: 3, others: 7}, skips{entries: 4, returns: 2, calls: 6, others: 1}
	if got, want := a.plus(b), (skips{entries: 5, returns: 7, calls: 9, others: 8}); got != want {
		t.Errorf("the sum is %+v, want %+v", got, want)
	}
	if got, want := a.noLess(b), (skips{entries: 4, returns: 5, calls: 6, others: 7}); got != want {
		t.Errorf("the larger of each is %+v, want %+v", got, want)
	}
}
