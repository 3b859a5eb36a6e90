package suite

import (
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

const pollTrace = `# tracer: nop
#
# entries-in-buffer/entries-written: 4/4   #P:1
#
    kworker/0:1H-95      [000] ..s1.    80.1: cq_poll: cq.id=7 requested 16, returned 2
          <idle>-0       [000] ..s1.    80.2: cq_poll: cq.id=8 requested 1, returned 1
    kworker/0:1H-95      [000] .....    80.3: cq_poll: cq.id=3 requested 16, returned 5
    kworker/0:1H-95      [000] .....    80.4: cq_poll: cq.id=7 requested 16, returned 0
`

func TestCQWitnessSums(t *testing.T) {
	w := cqWitness{management: []int{3}}
	if sum, err := w.sum(pollTrace); sum != 3 || err != nil {
		t.Errorf("%d, %v; want 3 without the CQ from before", sum, err)
	}
	for name, text := range map[string]string{
		"lost events":   "# entries-in-buffer/entries-written: 4/5\n",
		"no header":     "",
		"a failed poll": "# entries-in-buffer/entries-written: 1/1\n x: cq_poll: cq.id=9 requested 16, returned -22\n",
	} {
		if sum, err := w.sum(text); err == nil {
			t.Errorf("%s: %d", name, sum)
		}
	}
}

func TestProbesKernelVerbs(t *testing.T) {
	point := func(provider, mode string, n float64) otlp.Point {
		return otlp.Point{Metric: "otelcol_rdma_probes", Value: n, Attributes: map[string]string{
			"provider": provider, "mode": mode, "link": "fentry",
		}}
	}
	if how, ok := probesKernelVerbs(otlp.Metrics{point("rdma_rxe", "kernel", 1)}); !ok || how != "fentry" {
		t.Errorf("%q, %v", how, ok)
	}
	for _, p := range []otlp.Point{point("rxe", "site", 1), point("mlx5_ib", "kernel", 1), point("rdma_rxe", "kernel", 0)} {
		if _, ok := probesKernelVerbs(otlp.Metrics{p}); ok {
			t.Errorf("%v passes", p)
		}
	}
}
