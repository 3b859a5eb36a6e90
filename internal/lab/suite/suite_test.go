package suite

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

func TestNamesAreDistinct(t *testing.T) {
	names := Names(slices.Concat(All(), Service()))
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("two tests have one name: %v", names)
	}
	slugs := map[string]string{}
	for _, n := range names {
		if other := slugs[slug(n)]; other != "" {
			t.Errorf("%q and %q write to one directory", n, other)
		}
		slugs[slug(n)] = n
	}
}

func TestExpectedSums(t *testing.T) {
	sums, err := expectedSums(perftest.Run{Tool: perftest.SendBandwidth, Iterations: 250, Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, s := range sums {
		got[s.match.Metric+" "+attributesOf(s.match)] = s.want
	}
	want := map[string]uint64{
		"rdma.wqe.completions ib_send_bw rxa send": 3,
		"rdma.wqe.completions ib_send_bw rxa recv": 0,
		"rdma.wqe.completions ib_send_bw rxa":      3,
		"rdma.wqe.completions ib_send_bw rxb recv": 250,
		"rdma.wqe.completions ib_send_bw rxb":      250,
		"rdma.io ib_send_bw rxa transmit":          25000,
		"rdma.io ib_send_bw rxa receive":           0,
		"rdma.io ib_send_bw rxb transmit":          0,
		"rdma.io ib_send_bw rxb receive":           25000,
	}
	for key, n := range want {
		if value, ok := got[key]; !ok || value != n {
			t.Errorf("%s = %d (%v), want %d", key, value, ok, n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
}

// TestReadBytesArriveHere: the payload of a read travels towards the reader.
func TestReadBytesArriveHere(t *testing.T) {
	sums, err := expectedSums(perftest.Run{Tool: perftest.ReadLatency, Iterations: 10, Size: 64})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sums {
		if s.match.Metric != "rdma.io" {
			continue
		}
		want := uint64(0)
		if s.match.Attributes["rdma.device.name"] == clientDevice && s.match.Attributes["network.io.direction"] == "receive" {
			want = 640
		}
		if s.want != want {
			t.Errorf("%s: %d, want %d", attributesOf(s.match), s.want, want)
		}
	}
}

func TestDifferencesSeesOneTooManyAndOneTooFew(t *testing.T) {
	match := completionsOf("x", clientDevice, "send")
	point := func(n float64) otlp.Metrics {
		return otlp.Metrics{{Service: "x", Metric: "rdma.wqe.completions", Value: n, Attributes: map[string]string{"rdma.device.name": clientDevice, "rdma.operation.name": "send"}}}
	}
	for n, fails := range map[float64]bool{499: true, 500: false, 501: true} {
		if err := differences(point(n).Total, []sum{{match, 500}}); (err != nil) != fails {
			t.Errorf("%v of 500: %v", n, err)
		}
	}
}

func TestBalanced(t *testing.T) {
	telemetry := func(posted, delivered, retired float64) otlp.Metrics {
		return otlp.Metrics{
			{Metric: "p", Value: posted},
			{Metric: "w", Value: delivered, Attributes: map[string]string{"fate": "delivered"}},
			{Metric: "w", Value: retired, Attributes: map[string]string{"fate": "retired"}},
		}
	}
	if err := balanced(telemetry(100, 1, 99), "p", "w"); err != nil {
		t.Error(err)
	}
	if err := balanced(telemetry(100, 1, 98), "p", "w"); err == nil || !strings.Contains(err.Error(), "retired =98") {
		t.Errorf("err = %v", err)
	}
	if err := balanced(telemetry(0, 0, 0), "p", "w"); err == nil {
		t.Error("nothing counted passes")
	}
	if err := balanced(nil, "p", "w"); err == nil {
		t.Error("no telemetry passes")
	}
}

func TestSameQuantile(t *testing.T) {
	ours := func(lower, upper time.Duration) *otlp.Histogram {
		return &otlp.Histogram{Count: 4, Buckets: []otlp.Bucket{{Lower: lower, Upper: upper, Count: 4}}}
	}
	theirs := []time.Duration{2 * time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond}
	tests := []struct {
		name         string
		lower, upper time.Duration
		fails        bool
	}{
		{"same", 1900 * time.Microsecond, 2071 * time.Microsecond, false},
		{"just over perftest's interval", 2001 * time.Microsecond, 2180 * time.Microsecond, true},
		{"the probes' overhead", 1600 * time.Microsecond, 1744 * time.Microsecond, false},
		{"too short", 1400 * time.Microsecond, 1526 * time.Microsecond, true},
	}
	for _, tt := range tests {
		if _, err := sameQuantile(ours(tt.lower, tt.upper), theirs, 0.5); (err != nil) != tt.fails {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	// Ours has no late iteration, perftest's has some: p99 is the fourth from
	// the end, and three more may be explained by interruptions.
	for late, fails := range map[int]bool{5: false, 7: true} {
		theirs := slices.Repeat([]time.Duration{2 * time.Millisecond}, 300)
		for i := range late {
			theirs[299-i] = 9 * time.Millisecond
		}
		h := ours(1900*time.Microsecond, 2071*time.Microsecond)
		h.Count, h.Buckets[0].Count = 300, 300
		if _, err := sameQuantile(h, theirs, 0.99); (err != nil) != fails {
			t.Errorf("%d interrupted: %v", late, err)
		}
	}
	if _, err := sameQuantile(&otlp.Histogram{}, theirs, 0.5); err == nil {
		t.Error("an empty histogram passes")
	}
}

func TestCheckSpan(t *testing.T) {
	begin := time.Now().Add(-2 * time.Second)
	good := func() otlp.Span {
		return otlp.Span{
			Name: "send rxa", Service: pingpong, Start: begin.Add(time.Second), End: begin.Add(time.Second + 51*time.Millisecond),
			Attributes: map[string]string{
				"rdma.device.name": "rxa", "rdma.qp.number": "17",
				"rdma.wqe.stage.post": "0.001", "rdma.wqe.stage.completion": "0.05",
			},
		}
	}
	if err := checkSpan(good(), begin, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	spoil := map[string]func(*otlp.Span){
		"short":   func(s *otlp.Span) { s.End = s.End.Add(-2 * time.Millisecond) },
		"before":  func(s *otlp.Span) { s.Start, s.End = begin.Add(-time.Second), begin.Add(-time.Millisecond) },
		"future":  func(s *otlp.Span) { s.End = s.End.Add(time.Hour) },
		"device":  func(s *otlp.Span) { s.Attributes["rdma.device.name"] = "mlx5_0" },
		"name":    func(s *otlp.Span) { s.Name = "recv rxa" },
		"service": func(s *otlp.Span) { s.Service = "other" },
		"process": func(s *otlp.Span) { s.Attributes["process.pid"] = "9" },
		"no QP":   func(s *otlp.Span) { delete(s.Attributes, "rdma.qp.number") },
		"failed":  func(s *otlp.Span) { s.Failed = true },
		"no stage": func(s *otlp.Span) {
			delete(s.Attributes, "rdma.wqe.stage.post")
			delete(s.Attributes, "rdma.wqe.stage.completion")
		},
		"missing stage":  func(s *otlp.Span) { delete(s.Attributes, "rdma.wqe.stage.post") },
		"unreadable one": func(s *otlp.Span) { s.Attributes["rdma.wqe.stage.post"] = "x" },
	}
	for name, f := range spoil {
		s := good()
		f(&s)
		if err := checkSpan(s, begin, []int{1, 2}); err == nil {
			t.Errorf("%s: passes", name)
		}
	}
}

func TestListens(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue
   0: 00000000:4855 00000000:0000 0A 00000000:00000000
   1: 0100007F:4856 00000000:0000 01 00000000:00000000
`
	if !listens(table, ":4855") || listens(table, ":4856") || listens(table, ":4857") {
		t.Error("wrong")
	}
}

func TestTroubleIsRecognised(t *testing.T) {
	bad := []string{
		"4,1,1,-;BUG: unable to handle page fault", "4,1,1,-;WARNING: CPU: 0 PID: 1 at kernel/events/uprobes.c:1",
		"6,1,1,-;ib_read_lat[321]: segfault at 0 ip 0", "4,1,1,-;traps: ib_send_lat[1] trap int3 ip:1",
	}
	for _, line := range bad {
		if !trouble.MatchString(line) {
			t.Errorf("missed: %s", line)
		}
	}
	for _, line := range []string{"6,1,1,-;rdma_rxe: loaded", "6,1,1,-;infiniband rxa: set active"} {
		if trouble.MatchString(line) {
			t.Errorf("false alarm: %s", line)
		}
	}
}

// TestChangedInSeesOneByte compares this test's own text with a copy in which a
// breakpoint was planted.
func TestChangedInSeesOneByte(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var text *elf.Prog
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			text = p
		}
	}
	path := filepath.Join(t.TempDir(), "lib")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	offset := text.Off &^ 0xfff
	mapping := textMapping{start: offset, end: offset + text.Memsz + 0x2000, offset: offset, path: path}
	memory := bytes.Clone(data)
	if n, err := changedIn(bytes.NewReader(memory), mapping); err != nil || n != 0 {
		t.Fatalf("untouched text: %d bytes differ, %v", n, err)
	}
	memory[text.Off+text.Filesz-1] ^= 0xcc
	if n, err := changedIn(bytes.NewReader(memory), mapping); err != nil || n != 1 {
		t.Fatalf("one breakpoint: %d bytes differ, %v", n, err)
	}
}

func TestMidstreamIsRight(t *testing.T) {
	hist := func(n uint64, upper, sum time.Duration) otlp.Histogram {
		return otlp.Histogram{Count: n, Sum: sum, Buckets: []otlp.Bucket{{Lower: upper * 10 / 11, Upper: upper, Count: n}}}
	}
	good := midstreamWatch{counted: 50, unsynced: true, watched: 100 * time.Millisecond, ours: hist(40, 2200*time.Microsecond, 88*time.Millisecond)}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	untimed := good
	untimed.ours = otlp.Histogram{}
	if err := untimed.check(); err != nil {
		t.Errorf("counted and never timed is right: %v", err)
	}
	spoil := map[string]func(*midstreamWatch){
		"nothing counted":   func(w *midstreamWatch) { w.counted = 0 },
		"more timed":        func(w *midstreamWatch) { w.counted = 39 },
		"shorter than wire": func(w *midstreamWatch) { w.ours = hist(40, 1900*time.Microsecond, 70*time.Millisecond) },
		"off by one":        func(w *midstreamWatch) { w.ours = hist(40, 4400*time.Microsecond, 176*time.Millisecond) },
		"never unsynced":    func(w *midstreamWatch) { w.unsynced = false },
	}
	for name, f := range spoil {
		w := good
		f(&w)
		if err := w.check(); err == nil {
			t.Errorf("%s: passes", name)
		}
	}
}

func TestAccountedFor(t *testing.T) {
	const quick, slow = 6 * time.Millisecond, 25 * time.Millisecond
	of := func(quicks, slows int) []time.Duration {
		return append(slices.Repeat([]time.Duration{quick}, quicks), slices.Repeat([]time.Duration{slow}, slows)...)
	}
	tests := []struct {
		name    string
		spans   int
		theirs  []time.Duration
		allSlow bool
		fails   bool
	}{
		{"none slow", 0, of(99, 0), false, false},
		{"the unreported one", 1, of(99, 0), false, false},
		{"two of which the client knows nothing", 2, of(99, 0), false, true},
		{"as many as the client saw", 9, of(90, 9), false, false},
		{"seen by the client alone", 0, of(90, 9), false, false},
		{"nothing said", 50, of(40, 60), true, true},
		{"too many however slow", 62, of(40, 60), false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := accountedFor(make([]otlp.Span, tt.spans), tt.theirs)
			if (err != nil) != tt.fails || errors.Is(err, errAllSlow) != tt.allSlow {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestPollMode(t *testing.T) {
	probes := func(provider, function, mode string, n float64) otlp.Point {
		return otlp.Point{Metric: "otelcol_rdma_probes", Value: n, Attributes: map[string]string{"provider": provider, "function": function, "mode": mode}}
	}
	tests := map[string]otlp.Metrics{
		"":          {probes("mlx5", "poll_cq", "site", 1), probes("rxe", "post_send", "site", 1)},
		"windows":   {probes("mlx5", "poll_cq", "site", 1), probes("rxe", "poll_cq", "site", 0), probes("rxe", "poll_cq", "windows", 1)},
		"site":      {probes("rxe", "post_send", "windows", 1), probes("rxe", "poll_cq", "site", 1)},
		"comparing": {probes("rxe", "poll_cq", "comparing", 1), probes("rxe", "post_recv", "site", 1)},
	}
	for want, telemetry := range tests {
		if got := pollMode(telemetry); got != want {
			t.Errorf("%v: %q, want %q", telemetry, got, want)
		}
	}
}

// A window without slow spans is described, too.
func TestExtremesOfNoSpans(t *testing.T) {
	if s, l := shortest(nil), longest(nil); s != 0 || l != 0 {
		t.Errorf("from %s to %s, want 0", s, l)
	}
	if got := (injectionResult{}).String(); !strings.Contains(got, "0 spans") {
		t.Errorf("no spans are described as %q", got)
	}
}

func TestSharesOfStages(t *testing.T) {
	span := func(d time.Duration, stage, seconds string) otlp.Span {
		return otlp.Span{Start: time.Unix(100, 0), End: time.Unix(100, 0).Add(d), Attributes: map[string]string{"rdma.wqe.stage." + stage: seconds}}
	}
	s := shares([]otlp.Span{span(30*time.Millisecond, "poll", "0.03"), span(10*time.Millisecond, "completion", "0.01")})
	if s["poll"] != 0.75 || s["completion"] != 0.25 {
		t.Errorf("%v", s)
	}
	if within(s, 0.5, 1) != nil || within(s, 0, 0.1) == nil || within(shares(nil), 0.5, 1) == nil {
		t.Error("wrong verdict")
	}
}

func TestSumsOfAllRuns(t *testing.T) {
	r := perftest.Run{Tool: perftest.WriteBandwidth, Iterations: 100, Size: 10}
	big := r
	big.Size = 20
	sums, err := sumsOfAll([]perftest.Run{r, big, big})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sums {
		if s.match.Attributes["network.io.direction"] == "transmit" && s.match.Attributes["rdma.device.name"] == clientDevice && s.want != 5000 {
			t.Errorf("%d bytes sent, want 5000", s.want)
		}
	}
}

func TestParseRegions(t *testing.T) {
	said, err := parseRegions("failed 14 dmabuf 95 registered 1000 released 20\n")
	want := regionsSaid{failed: syscall.EFAULT, dmabuf: syscall.EOPNOTSUPP, registering: time.Microsecond, releasing: 20}
	if err != nil || said != want {
		t.Errorf("%+v, %v", said, err)
	}
	if _, err := parseRegions("failed 14\n"); err == nil {
		t.Error("half a line passes")
	}
}

// A dma-buf that the device refused is counted with its error, and has no memory.
func TestExpectedRegions(t *testing.T) {
	for dmabuf, live := range map[syscall.Errno]uint64{0: 1, syscall.EOPNOTSUPP: 0} {
		for _, s := range expectedRegions(regionsSaid{failed: syscall.EFAULT, dmabuf: dmabuf}) {
			a := s.match.Attributes
			if a["rdma.memory.kind"] != "dmabuf" {
				continue
			}
			switch s.match.Metric {
			case "rdma.mr.registrations":
				if s.want != 1 || (a["error.type"] == "") != (dmabuf == 0) {
					t.Errorf("dma-buf %d: %+v", dmabuf, s)
				}
			case "rdma.mr.regions":
				if s.want != live {
					t.Errorf("dma-buf %d: %+v", dmabuf, s)
				}
			}
		}
	}
}

func TestCyclesPerMicrosecond(t *testing.T) {
	got, err := cyclesPerMicrosecond("processor\t: 0\nmodel name\t: QEMU Virtual CPU\ncpu MHz\t\t: 2095.076\nprocessor\t: 1\ncpu MHz\t\t: 1\n")
	if err != nil || got != 2095.076 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "cpu MHz\n", "cpu MHz : fast\n", "cpu MHz max : 3000\n"} {
		if got, err := cyclesPerMicrosecond(bad); err == nil {
			t.Errorf("%q: %v, no error", bad, got)
		}
	}
}
