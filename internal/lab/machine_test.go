package lab

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

func TestQuoteSurvivesAShell(t *testing.T) {
	words := []string{"printf", "%s|", "plain", "two words", "it's", `"$HOME" \n`, "", "a;b&c", "*"}
	out, err := exec.Command("sh", "-c", Quote(words)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(words[2:], "|") + "|"; string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestTailWriterKeepsTheEnd(t *testing.T) {
	var whole bytes.Buffer
	w := &tailWriter{w: &whole, limit: 10}
	for range 100 {
		if _, err := w.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write([]byte("the end")); err != nil {
		t.Fatal(err)
	}
	if got := w.tail(); got != "ne\nthe end" {
		t.Errorf("tail %q", got)
	}
	if whole.Len() != 507 {
		t.Errorf("passed on %d bytes, want 507", whole.Len())
	}
}

func TestShareDoublesCommas(t *testing.T) {
	if got := share("t", "/a,b", "")[1]; got != "local,id=t,path=/a,,b,security_model=none" {
		t.Error(got)
	}
}
