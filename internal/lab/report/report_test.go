package report

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	const whole = `{"release":"6.1.0-x"}
{"started":"a"}
{"test":{"name":"a","result":"pass","why":"500 of 500"}}
{"started":"b"}
`
	tests := []struct {
		name, events, died string
		release            string
		want               []Test
	}{
		{
			"dead during b", whole, "panic", "6.1.0-x",
			[]Test{
				{Name: "a", Result: Pass, Why: "500 of 500"},
				{Name: "b", Result: Fail, Why: "the guest died during this test: panic"},
				{Name: "c", Result: Fail, Why: "not run, the guest died before: panic"},
			},
		},
		{
			"torn line", whole + `{"test":{"name":"b","res`, "panic", "6.1.0-x",
			[]Test{
				{Name: "a", Result: Pass, Why: "500 of 500"},
				{Name: "b", Result: Fail, Why: "the guest died during this test: panic"},
				{Name: "c", Result: Fail, Why: "not run, the guest died before: panic"},
			},
		},
		{
			"never came up", "", "no end within 1s", "6.1",
			[]Test{
				{Name: "a", Result: Fail, Why: "not run, the guest died before: no end within 1s"},
				{Name: "b", Result: Fail, Why: "not run, the guest died before: no end within 1s"},
				{Name: "c", Result: Fail, Why: "not run, the guest died before: no end within 1s"},
			},
		},
		{
			"skip without a reason, unknown result, silent end",
			`{"test":{"name":"a","result":"skip"}}` + "\n" + `{"test":{"name":"b","result":"maybe","why":"x"}}` + "\n", "", "6.1",
			[]Test{
				{Name: "a", Result: Fail, Why: "skipped without a reason"},
				{Name: "b", Result: Fail, Why: `unknown result "maybe": x`},
				{Name: "c", Result: Fail, Why: "the guest ended without reporting this test"},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, err := Read(strings.NewReader(tt.events), "6.1", []string{"a", "b", "c"}, tt.died)
			if err != nil || k.Release != tt.release || !slices.Equal(k.Tests, tt.want) {
				t.Fatalf("got %+v, %v; want %s %+v", k, err, tt.release, tt.want)
			}
		})
	}
}

func TestReadRefusesAnUnknownTest(t *testing.T) {
	if _, err := Read(strings.NewReader(`{"test":{"name":"x","result":"pass"}}`), "6.1", []string{"a"}, ""); err == nil {
		t.Fatal("no error")
	}
}

func TestAppendAndWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "report.json")
	if err := (Report{Kernels: []Kernel{{Release: "r", Tests: []Test{{Name: "a", Result: Pass}}}}}).Write(path); err != nil {
		t.Fatal(err)
	}
	events := filepath.Join(t.TempDir(), "events")
	f, err := os.Create(events)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Event{{Release: "r"}, {Started: "a"}, {Test: &Test{Name: "a", Result: Skip, Why: "no such device"}}} {
		if err := Append(f, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(events)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	k, err := Read(r, "6.1", []string{"a"}, "")
	if err != nil || len(k.Tests) != 1 || k.Tests[0].Result != Skip {
		t.Fatalf("got %+v, %v", k, err)
	}
}

func TestThroughput(t *testing.T) {
	dir := t.TempDir()
	asJSON, asText := filepath.Join(dir, "throughput.json"), filepath.Join(dir, "throughput.txt")
	const mega = 1 << 20
	k, err := Read(strings.NewReader(`{"release":"6.1.0-x"}
{"throughput":{"tool":"ib_write_bw","size_bytes":4096,"iterations":3000,"untraced_bytes_per_s":[1],"ratio":0.5}}
`), "6.1", nil, "")
	if err != nil || len(k.Throughput) != 1 || k.Throughput[0].Size != 4096 {
		t.Fatalf("%+v, %v", k, err)
	}
	k.Throughput = append(k.Throughput, NewThroughput("ib_write_bw", 65536, 500, []float64{30 * mega, 10 * mega, 20 * mega}, []float64{12 * mega, 18 * mega}))
	const inKernel = "kernel 6.1.0-x, soft-RoCE, emulated: reads of 4096 bytes: 300 I/Os a second untraced, 150 traced, ratio 0.50, medians of 3 and 1 runs; " +
		"programs ran 3.0 times and 5.0 µs for an I/O; µs a run: a 2.00, b 1.00\n"
	programs := []ProgramCost{{Name: "a", Runs: 200, Nanoseconds: 400_000}, {Name: "b", Runs: 100, Nanoseconds: 100_000}}
	measured := NewKernelVerbs("reads", 4096, 100, []float64{400, 200, 300}, []float64{150}, programs)
	if err := (Report{Kernels: []Kernel{{Release: k.Release, KernelVerbs: []KernelVerbs{measured}}}}).WriteThroughput(dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(asText); err != nil || string(text) != inKernel {
		t.Errorf("of kernel verbs: %q, %v", text, err)
	}
	if err := (Report{Kernels: []Kernel{k}}).WriteThroughput(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(asText)
	const want = "kernel 6.1.0-x, soft-RoCE, emulated: ib_write_bw of 65536 bytes: 20.00 MiB/s untraced, 15.00 traced, ratio 0.75, medians of 3 and 2 runs\n"
	if err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("%q, %v", text, err)
	}
	if err := (Report{Kernels: []Kernel{k, {Release: "6.12"}}}).WriteThroughput(dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(asText); err != nil || !strings.HasSuffix(string(text), want+besideEachOther) {
		t.Errorf("of two guests: %q, %v", text, err)
	}
	data, err := os.ReadFile(asJSON)
	if err != nil || !strings.Contains(string(data), `"ratio": 0.75`) {
		t.Errorf("%s, %v", data, err)
	}
	if err := (Report{Kernels: []Kernel{{Release: "6.1"}}}).WriteThroughput(dir); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{asJSON, asText} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s of an earlier run is still there: %v", path, err)
		}
	}
}
