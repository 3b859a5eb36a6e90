package diagnose

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const causeDocument = "../../docs/causes.md"

// The document is that of the table. With UPDATE_GOLDEN set it is written, and the
// test fails so that this cannot go unnoticed.
func TestCausesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(causeDocument)
	if err != nil && os.Getenv("UPDATE_GOLDEN") == "" {
		t.Fatal(err)
	}
	want := document(Causes())
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(causeDocument, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Error("the document was written")
	}
	if string(text) != want {
		t.Error("docs/causes.md differs from the table: run the test with UPDATE_GOLDEN=1")
	}
}

const documentHead = `# Causes

Why work requests are slow, as verdicts name it (` + "`rdma.slow.cause`" + `). Every cause is judged by itself for the slow requests of one queue
pair and the second around them. The most confident one is named, or one that is as confident and brings that one about; others that
are as confident put it in doubt.

- ` + "`certain`" + `: what happened was counted or measured itself, in the same window, and accounts for the time.
- ` + "`likely`" + `: what is known fits it and, as far as is known, nothing else.
- ` + "`possible`" + `: something speaks for it, and others would look the same.
- The cause ` + "`unknown`" + `: nothing speaks for any. The verdict says what would tell.

Counters are those of [counters.md](counters.md): of the whole device, not of one queue pair, and what processes do that are not
traced is in them as well. What they grew by is compared in number and in time with what was slow, before it is believed. One that
was not read, or stands at its highest value, says nothing. Stages are those of [how it works](how-it-works.md#what-is-measured).

This file is written from the table in ` + "`internal/diagnose`" + `, by its test with UPDATE_GOLDEN=1.

`

const documentProof = `
Proven %s: tests bring it about and see it named. Proven %s: tests feed recorded or written counters
and measurements; nothing brought it about. ` + "`make verdicts`" + ` brings about those of the host's threads on a simulated device, those of the
wire and of the peer with soft-RoCE in a virtual machine, in shuffled order, and each has to be named first within five seconds. In each
shuffle are twelve seconds of sound traffic whose sizes, depths and rates vary, six of a full port, and twelve on soft-RoCE, in which no
incident may be opened.
`

func document(causes []Cause) string {
	var out strings.Builder
	out.WriteString(documentHead)
	out.WriteString("| cause | what it is | proven |\n| --- | --- | --- |\n")
	for _, c := range causes {
		fmt.Fprintf(&out, "| [`%s`](#%s) | %s | %s |\n", c.Name, c.Name, c.Title, c.Proven)
	}
	fmt.Fprintf(&out, documentProof, Executed, Recorded)
	for _, c := range causes {
		out.WriteString(section(c))
	}
	return out.String()
}

func section(c Cause) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n## %s\n\n%s: %s\n\n", c.Name, strings.ToUpper(c.Title[:1])+c.Title[1:], c.Happens)
	fmt.Fprintf(&out, "Needs: %s.\n", c.Needs)
	list(&out, "For", c.For)
	list(&out, "Against", c.Against)
	fmt.Fprintf(&out, "\nCannot tell: %s\n", c.CannotTell)
	fmt.Fprintf(&out, "\nConfirm by hand: %s\n", c.Confirm)
	fmt.Fprintf(&out, "\nRemedy: %s\n", c.Remedy)
	if len(c.Consequences) > 0 {
		fmt.Fprintf(&out, "\nBrings about, and so is not put in doubt by: `%s`.\n", strings.Join(c.Consequences, "`, `"))
	}
	fmt.Fprintf(&out, "\nSource: <%s>\n", strings.Join(c.Source, ">, <"))
	return out.String()
}

func list(out *strings.Builder, title string, items []string) {
	fmt.Fprintf(out, "\n%s:\n\n", title)
	for _, item := range items {
		fmt.Fprintf(out, "- %s\n", item)
	}
}

// Whoever looks up what to do finds every cause.
func TestSlowJobNamesEveryCause(t *testing.T) {
	text, err := os.ReadFile("../../docs/slow-job.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Causes() {
		link := fmt.Sprintf("[`%s`](causes.md#%s)", c.Name, c.Name)
		if !strings.Contains(string(text), link) {
			t.Errorf("docs/slow-job.md does not name %s", link)
		}
	}
}

// What reads a recording fails where there is none.
func TestRecordingsAreMadeFirst(t *testing.T) {
	for _, c := range Causes() {
		before, _, reads := strings.Cut(c.Confirm, "perf sched timehist")
		if reads && !strings.Contains(before, "perf sched record") {
			t.Errorf("%s: nothing is recorded before it is read: %s", c.Name, c.Confirm)
		}
	}
}
