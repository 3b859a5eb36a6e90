package tracer

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func bytesOf[T any](value *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
}

// collector is the process that decodes.
const collector = 98

func TestDecodeSlow(t *testing.T) {
	event := bpf.TrackerSlowEvent{
		Incarnation: 7, Context: 0x1000, Cq: 0x2000, WrId: 9, CqeStamp: 77,
		PostedNs: 100, DeliveredNs: 450100, Bytes: 1 << 20, BusyNs: 5, ThresholdNs: 50000,
		Tgid: 42, QpNum: 0x18f2, RemoteQp: 3, Requests: 4, Outstanding: 6, VendorError: 0x81,
		Lkey: 0x1234, PostTid: 43, PostCpu: 1, PollTid: 44, PollCpu: 2,
		Device: 5, Port: 1, QpType: 2, Operation: uint8(verbs.OpRDMAWriteWithImm), Status: 12,
		KnownStages: 0b1111, HasBusy: 1, ElsewhereUs: 3,
		TraceId: [16]byte{1}, SpanId: [8]byte{2},
		Poller: bpf.TrackerScheduling{
			RunnableNs: 300, AsleepNs: 20, HeldNs: 7, InterruptedNs: 40000, InterruptsKnown: 1, LongestNs: 280,
			Switches: 3, Migrations: 1, InsteadTid: 99, InsteadTgid: collector,
			Known: uint32(bpf.TrackerSchedulingKnownSCHEDULING_WHOLE),
		},
		Poster: bpf.TrackerScheduling{AsleepNs: 5, Known: uint32(bpf.TrackerSchedulingKnownSCHEDULING_PARTLY)},
	}
	for i, c := range "hog" {
		event.Poller.InsteadComm[i] = int8(c)
	}
	event.StageNs = [6]uint64{1, 2, 3, 4, 0}
	for i, c := range "NCCL Progress 0" {
		event.PollComm[i] = int8(c)
	}
	got, err := decodeSlow(bytesOf(&event), collector)
	if err != nil {
		t.Fatal(err)
	}
	want := verbs.Completion{
		WorkRequest: verbs.WorkRequest{
			Queue:  verbs.QueueID{Process: verbs.ProcessID{TGID: 42, Incarnation: 7}, Context: 0x1000, QPNumber: 0x18f2},
			QPType: 2, RemoteQP: 3, CQ: 0x2000, Port: 1,
			Operation: verbs.OpRDMAWriteWithImm, WRID: 9,
			Bytes: 1 << 20, LocalKey: 0x1234, Outstanding: 6, Posted: 100,
			Poster: verbs.Thread{TID: 43, CPU: 1},
		},
		Status: 12, VendorError: 0x81, Requests: 4, Delivered: 450100,
		Stages: [verbs.NumStages]time.Duration{1, 2, 3, 4, 0}, Known: 0b1111,
		Elsewhere: 3 * time.Microsecond, HasElsewhere: true,
		Busy: 5, HasBusy: true, Threshold: 50 * time.Microsecond,
		Poller: verbs.Thread{TID: 44, CPU: 2, Name: "NCCL Progress 0"},
		PollerScheduling: verbs.Scheduling{
			Runnable: 300, Asleep: 20, Stopped: 7, Interrupted: 40 * time.Microsecond, InterruptsKnown: true, Longest: 280,
			Switches: 3, Migrations: 1, Instead: verbs.Thread{TID: 99, Name: "hog"}, ByCollector: true, Whole: true,
		},
		HasPollerScheduling: true,
		PosterScheduling:    verbs.Scheduling{Asleep: 5},
		HasPosterScheduling: true,
		Span:                verbs.SpanContext{TraceID: [16]byte{1}, SpanID: [8]byte{2}},
	}
	if got != (stampedCompletion{want, 5, 77}) {
		t.Errorf("got %+v\nwant %+v of device 5 with stamp 77", got, want)
	}
}

// TestSchedulingOfOneThread: the record of a thread that posted and polled holds
// what is known of it once, and nothing where nothing is known.
func TestSchedulingOfOneThread(t *testing.T) {
	event := bpf.TrackerSlowEvent{
		PostTid: 44, PollTid: 44, ElsewhereUs: elsewhereUnknown,
		Poller: bpf.TrackerScheduling{RunnableNs: 300, Known: uint32(bpf.TrackerSchedulingKnownSCHEDULING_PARTLY)},
	}
	got, err := decodeSlow(bytesOf(&event), collector)
	if err != nil {
		t.Fatal(err)
	}
	want := verbs.Scheduling{Runnable: 300}
	if !got.HasPosterScheduling || !got.HasPollerScheduling || got.PosterScheduling != want || got.PollerScheduling != want {
		t.Errorf("of one thread: %+v and %+v, want %+v twice", got.PosterScheduling, got.PollerScheduling, want)
	}
	if got.HasElsewhere || got.Elsewhere != 0 {
		t.Errorf("polled others for %v, which is not known", got.Elsewhere)
	}
	event.Poller.Known = uint32(bpf.TrackerSchedulingKnownSCHEDULING_UNKNOWN)
	got, err = decodeSlow(bytesOf(&event), collector)
	if err != nil {
		t.Fatal(err)
	}
	if got.HasPosterScheduling || got.HasPollerScheduling || got.PollerScheduling != (verbs.Scheduling{}) {
		t.Errorf("what is not known was told: %+v", got.PollerScheduling)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(bytesOf(&bpf.TrackerSlowEvent{}))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := decodeSlow(raw, collector); (err == nil) != (len(raw) >= int(unsafe.Sizeof(bpf.TrackerSlowEvent{}))) {
			t.Errorf("%d bytes: %v", len(raw), err)
		}
		if _, err := decodeControl(raw); (err == nil) != (len(raw) >= int(unsafe.Sizeof(bpf.TrackerControlEvent{}))) {
			t.Errorf("%d bytes: %v", len(raw), err)
		}
		if _, err := decodeAsync(raw); (err == nil) != (len(raw) >= int(unsafe.Sizeof(bpf.ResourcesAsyncEvent{}))) {
			t.Errorf("%d bytes: %v", len(raw), err)
		}
	})
}

// TestForeignNames: what a process may write into its names reaches no terminal.
func TestForeignNames(t *testing.T) {
	names := map[string]string{
		"NCCL Progress 0": "NCCL Progress 0",
		"a\xffb\x00c":     "a\uFFFDb",
		"\x1b[2Jgone":     "\uFFFD[2Jgone",
		"two\nlines":      "two\uFFFDlines",
		"\u009b31mred":    "\uFFFD31mred",
		"\u202eleft":      "\uFFFDleft",
	}
	for foreign, want := range names {
		if got := commName([]byte(foreign)); got != want {
			t.Errorf("%q was read as %q", foreign, got)
		}
		slow := bpf.TrackerSlowEvent{
			Poller: bpf.TrackerScheduling{Known: uint32(bpf.TrackerSchedulingKnownSCHEDULING_WHOLE)},
		}
		var event bpf.ResourcesAsyncEvent
		for i := range len(foreign) {
			slow.PollComm[i] = int8(foreign[i])
			slow.Poller.InsteadComm[i] = int8(foreign[i])
			event.Device.Name[i] = int8(foreign[i])
		}
		completion, err := decodeSlow(bytesOf(&slow), collector)
		if err != nil || completion.Poller.Name != want {
			t.Errorf("a poller %q was read as %q, %v", foreign, completion.Poller.Name, err)
		}
		if got := completion.PollerScheduling.Instead.Name; got != want {
			t.Errorf("a thread %q that took the CPU was read as %q", foreign, got)
		}
		async, err := decodeAsync(bytesOf(&event))
		if err != nil || async.Device != want {
			t.Errorf("a device %q was read as %q, %v", foreign, async.Device, err)
		}
	}
}

// TestForeignThreadName: the same for names that are read from /proc.
func TestForeignThreadName(t *testing.T) {
	root := t.TempDir()
	comm := filepath.Join(root, "7/task/8/comm")
	if err := os.MkdirAll(filepath.Dir(comm), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(comm, []byte("\x1b[2J\ngone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tracer := &Tracer{threads: process.NewReader(root)}
	if got, want := tracer.threadName(verbs.ProcessID{TGID: 7}, 8), "\uFFFD[2J\uFFFDgone"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := tracer.threadName(verbs.ProcessID{TGID: 7}, 9); got != "" {
		t.Errorf("a thread that is gone is called %q", got)
	}
}

func TestNanosecondsPerGiB(t *testing.T) {
	for rate, want := range map[float64]uint64{
		50e9: 21474836, 12.5e9: 85899346, 0: 0, -1: 0, math.Inf(1): 0, 1: 0, 1e18: 1,
	} {
		if got := nanosecondsPerGiB(rate); got != want {
			t.Errorf("%g bytes/s: %d ns, want %d", rate, got, want)
		}
	}
	if got := nanosecondsPerGiB(math.NaN()); got != 0 {
		t.Errorf("not a number: %d ns", got)
	}
}

func TestHeldCapabilities(t *testing.T) {
	path := filepath.Join(t.TempDir(), "status")
	if err := os.WriteFile(path, []byte("Name:\tx\nCapEff:\t000000c000080004\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := HeldCapabilities(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"CAP_DAC_READ_SEARCH": true, "CAP_SYS_PTRACE": true, "CAP_SYS_ADMIN": false, "CAP_PERFMON": true, "CAP_BPF": true,
	} {
		if held[name] != want {
			t.Errorf("%s: %v, want %v", name, held[name], want)
		}
	}
	if err := os.WriteFile(path, []byte("CapEff:\tnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := HeldCapabilities(path); err == nil {
		t.Error("nonsense was read as capabilities")
	}
}

func TestOlder(t *testing.T) {
	for release, want := range map[string]bool{
		"5.14.0-427.el9": true, "5.15.0-105-generic": false, "6.1.0-40-amd64": false, "4.19.0": true, "nonsense": false,
	} {
		if got := OlderKernel(release, 5, 15); got != want {
			t.Errorf("%s older than 5.15: %v", release, got)
		}
	}
}

func TestLedger(t *testing.T) {
	books := newLedger()
	books.add(&bpf.TrackerQueue{Posted: 10, Delivered: 3, Retired: 2, Undone: 1, Lost: 1, End: uint32(bpf.TrackerQueueEndEND_DESTROY)})
	if got := books.discarded["destroy"]; got != 3 {
		t.Errorf("%d discarded, want 3", got)
	}
	copied := books.clone()
	copied.add(&bpf.TrackerQueue{Posted: 1, End: uint32(bpf.TrackerQueueEndEND_EXIT)})
	if books.posted != 10 || len(books.discarded) != 1 {
		t.Error("a copy shares what it counts")
	}
}

func TestConfigDefaults(t *testing.T) {
	cfg, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.MaxMapBytes != 32<<20 || cfg.Root != "/" || !cfg.TakesProcess(1) || !cfg.TakesDevice("x") || cfg.Logger == nil {
		t.Errorf("%+v", cfg)
	}
	for _, bad := range []Config{{EventBytes: 5000}, {EventBytes: 2048}, {Threshold: -1}, {MaxThreadCPURatio: -1}, {MaxAgentCPUCores: -1}} {
		if _, err := bad.withDefaults(); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}
