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
