package perftest

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestWork(t *testing.T) {
	tests := []struct {
		run            Run
		client, server Work
	}{
		{
			Run{Tool: WriteLatency, Iterations: 500, Size: 64},
			Work{verbs.OpRDMAWrite, 500, 500, 0},
			Work{verbs.OpRDMAWrite, 500, 500, 0},
		},
		{
			Run{Tool: SendLatency, Iterations: 500, Size: 64},
			Work{verbs.OpSend, 500, 500, 500},
			Work{verbs.OpSend, 500, 500, 500},
		},
		{Run{Tool: ReadLatency, Iterations: 500, Size: 64}, Work{verbs.OpRDMARead, 500, 500, 0}, Work{}},
		{Run{Tool: WriteBandwidth, Iterations: 1000, Size: 4096}, Work{verbs.OpRDMAWrite, 1000, 10, 0}, Work{}},
		{Run{Tool: WriteBandwidth, Iterations: 1001, Size: 4096}, Work{verbs.OpRDMAWrite, 1001, 11, 0}, Work{}},
		{Run{Tool: WriteBandwidth, Iterations: 1000, Size: 8192}, Work{verbs.OpRDMAWrite, 1000, 10, 0}, Work{}},
		{Run{Tool: WriteBandwidth, Iterations: 1000, Size: 8193}, Work{verbs.OpRDMAWrite, 1000, 1000, 0}, Work{}},
		{Run{Tool: WriteBandwidth, Iterations: 50, Size: 4096}, Work{verbs.OpRDMAWrite, 50, 1, 0}, Work{}},
		{Run{Tool: SendBandwidth, Iterations: 750, Size: 4096}, Work{verbs.OpSend, 750, 8, 0}, Work{Receives: 750}},
	}
	for _, tt := range tests {
		client, server, err := tt.run.Work()
		if err != nil || client != tt.client || server != tt.server {
			t.Errorf("%+v: client %+v server %+v err %v, want %+v and %+v", tt.run, client, server, err, tt.client, tt.server)
		}
	}
}

func TestWorkRefuses(t *testing.T) {
	for _, r := range []Run{
		{Tool: WriteLatency, Iterations: 4, Size: 64},
		{Tool: WriteLatency, Iterations: 100},
		{Tool: "ib_atomic_lat", Iterations: 100, Size: 8},
	} {
		if _, _, err := r.Work(); err == nil {
			t.Errorf("%+v: no error", r)
		}
	}
}

// TestSignaledFollowsThePostingLoop holds the closed form against the flag's
// history in run_iter_bw, step by step.
func TestSignaledFollowsThePostingLoop(t *testing.T) {
	for iterations := minIterations; iterations < 700; iterations++ {
		mod := min(defaultModeration, bandwidthDepth, iterations)
		flag, want := mod == 1, uint64(0)
		for posted := 0; posted < iterations; posted++ {
			if posted%mod == 0 && mod > 1 && posted != iterations-1 {
				flag = false
			}
			if flag {
				want++
			}
			if next := posted + 1; next%mod == mod-1 || next == iterations-1 {
				flag = true
			}
		}
		if got := (Run{Tool: WriteBandwidth, Iterations: iterations, Size: 64}).signaled(); got != want {
			t.Fatalf("%d iterations: %d signaled, the loop gives %d", iterations, got, want)
		}
	}
}

func TestIterations(t *testing.T) {
	out := " #bytes\n#, cycles\n1, 381000\n2, 2e+06\n3, 500\n---\n 2  4  1.0\n"
	got, err := Iterations(out, 2000)
	want := []time.Duration{190500 * time.Nanosecond, time.Millisecond, 250 * time.Nanosecond}
	if err != nil || len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Fatalf("got %v, %v; want %v", got, err, want)
	}
	for _, bad := range []string{"", "nothing here\n", "2, 5\n", "1, 5\n3, 6\n", "1, -\n", "1, 1e300\n"} {
		if got, err := Iterations("#, cycles\n"+bad, 2000); err == nil {
			t.Errorf("%q: %v, no error", bad, got)
		}
	}
	if got, err := Iterations(strings.Replace(out, "cycles", "usec", 1), 2000); err == nil {
		t.Errorf("microseconds read as cycles: %v", got)
	}
	if got, err := Iterations(out, 0); err == nil {
		t.Errorf("a clock that stands: %v", got)
	}
}

func FuzzIterations(f *testing.F) {
	f.Add("#, cycles\n1, 2.5e+06\n2, 3\n")
	f.Fuzz(func(t *testing.T, s string) {
		values, err := Iterations(s, 2000)
		if err == nil && len(values) == 0 {
			t.Fatal("neither values nor an error")
		}
		for _, v := range values {
			if v < 0 || v > time.Hour {
				t.Fatalf("value %v out of range", v)
			}
		}
	})
}

func TestQuantile(t *testing.T) {
	values := []time.Duration{5, 1, 4, 2, 3, 10, 9, 8, 7, 6}
	for q, want := range map[float64]time.Duration{0.5: 5, 0.9: 9, 0.99: 10, 0: 1, 1: 10} {
		if got := Quantile(values, q); got != want {
			t.Errorf("quantile %v = %v, want %v", q, got, want)
		}
	}
}

func TestArguments(t *testing.T) {
	r := Run{Tool: ReadLatency, Iterations: 10, Size: 64, Port: 7}
	if got := strings.Join(r.Arguments("rxa", 1, "10.9.0.2"), " "); got != "ib_read_lat -d rxa -x 1 -F -n 10 -s 64 -U -C -p 7 10.9.0.2" {
		t.Error(got)
	}
	r = Run{Tool: WriteBandwidth, Iterations: 10, Size: 64}
	if got := strings.Join(r.Arguments("rxb", 1, ""), " "); got != "ib_write_bw -d rxb -x 1 -F -n 10 -s 64" {
		t.Error(got)
	}
}

func TestBandwidth(t *testing.T) {
	const head = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
	tests := []struct {
		name, output string
		want         float64
	}{
		{"as printed by 4.5-0.17", head + " 65536      2000             23.55              21.60  \t\t   0.000346\n", 21.60 * (1 << 20)},
		{"other units", strings.ReplaceAll(head, "MB", "Gb") + " 65536 2000 23.55 21.60 0.000346\n", 0},
		{"a clock that was not calibrated", head + " 4096       3000             0.00               0.00   \t\t   0.000000\n", 0},
		{"no result", head, 0},
	}
	for _, tt := range tests {
		got, err := Bandwidth(tt.output)
		if got != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
}

func TestUncalibrated(t *testing.T) {
	if !Uncalibrated("Correlation coefficient r^2: 0.703092 < 0.9\n---\n") || Uncalibrated("---\n") {
		t.Error("wrong")
	}
}
