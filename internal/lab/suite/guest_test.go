package suite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPrompt(t *testing.T) {
	broken := errors.New("broken")
	const s = time.Second
	tests := []struct {
		name  string
		took  []time.Duration
		err   error
		tries int
		note  string
		want  string
	}{
		{"in time", []time.Duration{s}, nil, 1, "", ""},
		{"late once", []time.Duration{3 * s, 2 * s}, nil, 2, "; it was late before, 3s", ""},
		{"always late", []time.Duration{3 * s, 4 * s, 5 * s}, nil, attempts, "", "it took 3s, 4s, 5s, never 2s or less"},
		{"broken", []time.Duration{3 * s}, broken, 1, "", "broken"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tries := 0
			note, err := prompt(2*s, func() (time.Duration, error) {
				tries++
				return tt.took[tries-1], tt.err
			})
			if note != tt.note {
				t.Errorf("note %q, want %q", note, tt.note)
			}
			if tries != tt.tries || (err != nil) != (tt.want != "") || err != nil && err.Error() != tt.want {
				t.Errorf("%v after %d tries, want %q after %d", err, tries, tt.want, tt.tries)
			}
		})
	}
}

// TestWorkedUntil: there is work while a process of the test runs, and none after
// the end of the last one, of this test or an earlier one.
func TestWorkedUntil(t *testing.T) {
	g := &Guest{dir: t.TempDir(), lastWork: time.Unix(1, 0)}
	if got := g.worked(); !got.Equal(time.Unix(1, 0)) {
		t.Errorf("without a process of this test: %s", got)
	}
	p, err := g.start("long", "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if got := g.worked(); got.Before(before) {
		t.Errorf("%s while a process runs at %s", got, before)
	}
	p.kill()
	if got := g.worked(); got.Before(before) || !got.Equal(p.ended) {
		t.Errorf("%s, the process ended at %s", got, p.ended)
	}
	if _, err := startProcess(filepath.Join(g.dir, "none"), "/nonexistent"); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("err = %v", err)
	}
}

func TestPreemptionInUse(t *testing.T) {
	for models, want := range map[string]string{
		"none (voluntary) full \n": "voluntary", "(full) lazy \n": "full", "none voluntary full\n": "",
	} {
		got := ""
		if m := preemptNow.FindStringSubmatch(models); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", models, got, want)
		}
	}
}
