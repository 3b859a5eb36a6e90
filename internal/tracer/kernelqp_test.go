package tracer

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func connectedQP() bpf.ResourcesKernelQp {
	return bpf.ResourcesKernelQp{
		SendCq:    bpf.ResourcesKernelCq{UserHandle: 0x2000, Number: 0, Cqe: 511},
		RecvCq:    bpf.ResourcesKernelCq{UserHandle: 0x3000, Number: 7},
		LocalGid:  netip.MustParseAddr("::ffff:10.9.0.1").As16(),
		RemoteGid: netip.MustParseAddr("::ffff:10.9.0.2").As16(),
		Known: qpKnowsCreation | qpKnowsVector | qpKnowsRemoteGID | qpKnowsRetry | qpKnowsRNRRetry |
			qpKnowsTimeout | qpKnowsMinRNRTimer | qpKnowsState,
		MaxSendWr: 64, MaxRecvWr: 16, SignalsAll: 1, State: 3, RemoteQp: 18, GidType: 2, Type: 2, Port: 1, PathMtu: 3,
		Timeout: 14, RetryCnt: 7, RnrRetry: 6, MinRnrTimer: 12, ServiceLevel: 3, TrafficClass: 106,
	}
}

func TestPathOf(t *testing.T) {
	qp := connectedQP()
	want := verbs.Path{
		LocalGID: qp.LocalGid, RemoteGID: qp.RemoteGid, GIDType: verbs.GIDTypeRoCEv2, MTU: 1024,
		AckTimeout: 67108864, MinRNRTimer: 640 * time.Microsecond,
		RetryCount: 7, RNRRetryCount: 6, HasRetryCount: true, HasRNRRetryCount: true,
		ServiceLevel: 3, TrafficClass: 106, HasClass: true,
	}
	if got := pathOf(&qp); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	// A code of 0 is a time, unless it was never set.
	if got := pathOf(&bpf.ResourcesKernelQp{}); got != (verbs.Path{}) {
		t.Errorf("of a QP that was not connected: %+v", got)
	}
	if got := pathOf(&bpf.ResourcesKernelQp{Known: qpKnowsMinRNRTimer}).MinRNRTimer; got != verbs.RNRTimer(0) {
		t.Errorf("min_rnr_timer 0: %s", got)
	}
}

func TestSetupOf(t *testing.T) {
	qp := connectedQP()
	want := verbs.Setup{SendLimit: 64, RecvLimit: 16, SignalsAll: true, HasSignalsAll: true, State: 3, HasState: true}
	if got := setupOf(&qp); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := setupOf(&bpf.ResourcesKernelQp{}); got != (verbs.Setup{}) {
		t.Errorf("of a QP whose creation was not seen: %+v", got)
	}
}

// The number of the first CQ of a device is 0.
func TestFindCQ(t *testing.T) {
	qp := connectedQP()
	for address, want := range map[uint64]struct {
		number uint32
		known  bool
	}{0x2000: {0, true}, 0x3000: {7, true}, 0x4000: {0, false}, 0: {0, false}} {
		if cq, known := findCQ(&qp, address); cq.Number != want.number || known != want.known {
			t.Errorf("%#x: %+v, %v", address, cq, known)
		}
	}
	// A CQ of the kernel has no address in a process.
	if _, known := findCQ(&bpf.ResourcesKernelQp{}, 0); known {
		t.Error("an unknown address was found")
	}
}

func TestKernelOverrulesWhatItKnows(t *testing.T) {
	qp := connectedQP()
	c := verbs.WorkRequest{CQ: 0x2000, RemoteQP: 99, Port: 2}
	describeRequest(&c, &qp)
	if !c.HasCQNumber || c.CQNumber != 0 || c.RemoteQP != 18 || c.Port != 1 || c.QPType != 2 || c.CQSize != 511 ||
		c.Path != pathOf(&qp) || c.Setup != setupOf(&qp) {
		t.Errorf("%+v", c)
	}
	s := verbs.WorkRequest{CQ: 0x3000}
	describeRequest(&s, &qp)
	if !s.HasCQNumber || s.CQNumber != 7 || s.RemoteQP != 18 {
		t.Errorf("%+v", s)
	}
	q := verbs.QueueInfo{Limit: 16, RemoteQP: 99}
	describeQueue(&q, &bpf.ResourcesKernelQp{MaxSendWr: 5})
	if q.Limit != 16 || q.RemoteQP != 99 {
		t.Errorf("what is not known overruled: %+v", q)
	}
	describeQueue(&q, &qp)
	if q.Limit != 16 || q.RemoteQP != 18 {
		t.Errorf("a limit that libibverbs told was overruled: %+v", q)
	}
	for peak, want := range map[uint32]uint32{5: 64, 100: 100} {
		unseen := verbs.QueueInfo{Peak: peak}
		if describeQueue(&unseen, &qp); unseen.Limit != want {
			t.Errorf("limit %d with %d at a time, want %d", unseen.Limit, peak, want)
		}
	}
}

func TestDecodeAsync(t *testing.T) {
	event := bpf.ResourcesAsyncEvent{
		TimeNs: 5, Incarnation: 7, Tgid: 42, Event: 1, QpNum: 17, CqNumber: 3, Port: 1, HasQp: 1, HasCq: 1,
	}
	for i, c := range "rxa" {
		event.Device.Name[i] = int8(c)
	}
	got, err := decodeAsync(bytesOf(&event))
	if err != nil {
		t.Fatal(err)
	}
	want := verbs.AsyncEvent{
		Monotonic: 5, Type: verbs.AsyncQPFatal, Device: "rxa", Port: 1,
		Process: verbs.ProcessID{TGID: 42, Incarnation: 7}, QPNumber: 17, CQNumber: 3, HasQP: true, HasCQ: true,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := decodeAsync(bytesOf(&event)[:unsafe.Sizeof(event)-1]); err == nil {
		t.Error("a record that was cut off was read")
	}
}

// asyncTracer has just what delivering events takes.
func asyncTracer(takesProcess, takesDevice bool) *Tracer {
	return &Tracer{
		async: make(chan verbs.AsyncEvent, 1),
		cfg: Config{
			TakesProcess: func(int) bool { return takesProcess },
			TakesDevice:  func(string) bool { return takesDevice },
			NewProcess:   func(verbs.ProcessID, string) {},
		},
	}
}

func TestDeliverAsync(t *testing.T) {
	ofProcess, ofDevice := bytesOf(&bpf.ResourcesAsyncEvent{Tgid: 42}), bytesOf(&bpf.ResourcesAsyncEvent{Event: 10})
	for _, tc := range []struct {
		name                      string
		takesProcess, takesDevice bool
		raw                       []byte
		delivered                 int
	}{
		{"of a process", true, true, ofProcess, 1},
		{"of a process that is left out", false, true, ofProcess, 0},
		{"of a device, whatever the processes", false, true, ofDevice, 1},
		{"of a device that is left out", true, false, ofDevice, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := asyncTracer(tc.takesProcess, tc.takesDevice)
			tr.deliverAsync(tc.raw)
			if len(tr.async) != tc.delivered {
				t.Errorf("%d events", len(tr.async))
			}
		})
	}
	tr := asyncTracer(true, true)
	for range 3 {
		tr.deliverAsync(ofDevice)
	}
	tr.deliverAsync(ofDevice[1:])
	if tr.dropped.Load() != 2 || tr.undecodable.Load() != 1 {
		t.Errorf("%d dropped, %d undecodable", tr.dropped.Load(), tr.undecodable.Load())
	}
}

func TestModuleState(t *testing.T) {
	dir := t.TempDir()
	make := func(name string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	make("ib_uverbs")
	if state := moduleState(dir); state != "" {
		t.Errorf("without ib_core: %q", state)
	}
	make("ib_core")
	both := moduleState(dir)
	if err := os.Rename(filepath.Join(dir, "ib_uverbs"), filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	alone := moduleState(dir)
	// Loaded anew: another directory under the name.
	make("ib_uverbs")
	anew := moduleState(dir)
	if both == "" || alone == "" || both == alone || both == anew || anew == alone {
		t.Errorf("%q, %q, %q", both, alone, anew)
	}
}

// Kernel QPs take a sixteenth of the memory at most, and the rest is there for the
// other maps.
func TestKernelQPs(t *testing.T) {
	if n := kernelQPs(defaultMapBytes); n != 8192 {
		t.Errorf("%d QPs by default", n)
	}
	for _, bound := range []uint64{1 << 20, 4 << 20, 4 << 30} {
		n := kernelQPs(bound)
		if n == 0 || n > 8192 || kernelQPBytes(n) > bound/16 {
			t.Errorf("%d QPs, %d bytes, of %d", n, kernelQPBytes(n), bound)
		}
	}
}
