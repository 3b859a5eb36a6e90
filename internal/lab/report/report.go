// Package report is the form in which the lab's results travel: a line for each
// event from the guest, and one file for all kernels.
package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The results of a test.
const (
	Pass = "pass"
	Fail = "fail"
	Skip = "skip"
)

// Test is the result of one test. Why is a sentence; a failure and a skip must
// have one, a pass may say what it measured.
type Test struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Why    string `json:"why,omitempty"`
	// Mode is how completions of rxe were observed at the end of the test, ""
	// when no collector ran then.
	Mode string `json:"mode,omitempty"`
	// Seconds is how long the test took, the start of a collector for it included.
	Seconds float64 `json:"seconds,omitempty"`
}

// Throughput is what one perftest run moved, with and without the collector.
type Throughput struct {
	Tool       string `json:"tool"`
	Size       int    `json:"size_bytes"`
	Iterations int    `json:"iterations"`
	// Untraced and Traced are the averages of the runs in bytes a second, in the
	// order of the runs, the medians those of them.
	Untraced       []float64 `json:"untraced_bytes_per_s"`
	Traced         []float64 `json:"traced_bytes_per_s"`
	UntracedMedian float64   `json:"untraced_median_bytes_per_s"`
	TracedMedian   float64   `json:"traced_median_bytes_per_s"`
	// Ratio is the traced median divided by the untraced one.
	Ratio float64 `json:"ratio"`
}

// Kernel is the results of one boot.
type Kernel struct {
	// Release is what uname -r said in the guest, the line's name when the
	// guest died before it said so.
	Release string `json:"release"`
	Tests   []Test `json:"tests"`
	// Throughput is what was measured, nil when that test did not run.
	Throughput []Throughput `json:"throughput,omitempty"`
	// KernelVerbs is what tracing cost work in the kernel, nil when that test did not run.
	KernelVerbs []KernelVerbs `json:"kernel_verbs,omitempty"`
	// KeptFrom is when an earlier run gave these results, nil when this run did.
	KeptFrom *time.Time `json:"kept_from,omitempty"`
}

// Passed says whether tests ran and none failed.
func (k Kernel) Passed() bool {
	failed := func(t Test) bool { return t.Result != Pass && t.Result != Skip }
	return len(k.Tests) > 0 && !slices.ContainsFunc(k.Tests, failed)
}

// Report is the whole of a lab run.
type Report struct {
	Kernels []Kernel `json:"kernels"`
}

// Event is one line the guest writes: its release, the start of a test, its
// result, or a measurement.
type Event struct {
	Release     string       `json:"release,omitempty"`
	Started     string       `json:"started,omitempty"`
	Test        *Test        `json:"test,omitempty"`
	Throughput  *Throughput  `json:"throughput,omitempty"`
	KernelVerbs *KernelVerbs `json:"kernel_verbs,omitempty"`
}

// Append writes one event and forces it out, so that it outlives the guest.
func Append(f *os.File, e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// maxLine bounds a line of the guest's.
const maxLine = 1 << 20

// Read merges the events of one guest with the tests it was to run. died says
// how the guest ended before its time, "" when it did not; then, and when a
// test never reported, the test failed.
func Read(events io.Reader, line string, names []string, died string) (Kernel, error) {
	k := Kernel{Release: line}
	got := map[string]Test{}
	running := ""
	scanner := bufio.NewScanner(events)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		var e Event
		// The last line may be torn by the guest's death.
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			continue
		}
		switch {
		case e.Release != "":
			k.Release = e.Release
		case e.Throughput != nil:
			k.Throughput = append(k.Throughput, *e.Throughput)
		case e.KernelVerbs != nil:
			k.KernelVerbs = append(k.KernelVerbs, *e.KernelVerbs)
		case e.Started != "":
			running = e.Started
		case e.Test != nil:
			got[e.Test.Name] = checked(*e.Test)
			running = ""
		}
	}
	for _, name := range names {
		t, ok := got[name]
		if !ok {
			t = Test{Name: name, Result: Fail, Why: unreported(name, running, died)}
		}
		k.Tests = append(k.Tests, t)
		delete(got, name)
	}
	if len(got) > 0 {
		return k, fmt.Errorf("the guest reported %d tests the host does not know", len(got))
	}
	return k, scanner.Err()
}

// checked turns a result outside the vocabulary, and a skip without a reason,
// into a failure.
func checked(t Test) Test {
	switch {
	case t.Result == Pass, t.Result == Fail:
		return t
	case t.Result == Skip && t.Why != "":
		return t
	case t.Result == Skip:
		t.Why = "skipped without a reason"
	default:
		t.Why = fmt.Sprintf("unknown result %q: %s", t.Result, t.Why)
	}
	t.Result = Fail
	return t
}

func unreported(name, running, died string) string {
	switch {
	case died == "":
		return "the guest ended without reporting this test"
	case name == running:
		return "the guest died during this test: " + died
	default:
		return "not run, the guest died before: " + died
	}
}

// Write writes the report as indented JSON.
func (r Report) Write(path string) error {
	return writeJSON(path, r)
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
