package doctor

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

const (
	// levelWidth and checkWidth are those of the columns, lineWidth that of all.
	levelWidth, checkWidth, lineWidth = 8, 13, 110
	// maxText is the most bytes of one text.
	maxText = 4096
)

// WriteJSON writes a report for scripts.
func WriteJSON(to io.Writer, r *Report) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// WriteText writes a report for people.
func WriteText(to io.Writer, r *Report) error {
	out := bufio.NewWriter(to)
	if r.Host != "" || r.Kernel != "" {
		fmt.Fprintf(out, "%s, Linux %s\n\n", orUnknown(r.Host), orUnknown(r.Kernel))
	}
	for i := range r.Findings {
		writeFinding(out, &r.Findings[i])
	}
	for _, name := range r.NotReached {
		writeFinding(out, &Finding{Check: name, Level: Warning, What: "did not end in time: this machine is very busy, or what it reads does not answer"})
	}
	fmt.Fprintf(out, "\n%s\n", r.summary())
	return out.Flush()
}

func orUnknown(name string) string {
	if name == "" {
		return "unknown"
	}
	return text.Clean(name, maxText)
}

func writeFinding(out io.Writer, f *Finding) {
	head := fmt.Sprintf("%-*s %-*s ", levelWidth, f.Level, checkWidth, f.Check)
	indent := strings.Repeat(" ", levelWidth+checkWidth+2)
	for _, part := range []struct{ mark, text string }{{"", f.What}, {"", f.Means}, {"→ ", f.Do}} {
		for i, line := range wrap(text.Clean(part.text, maxText), lineWidth-len(indent)-2) {
			switch {
			case i == 0:
				line = part.mark + line
			case part.mark != "":
				line = "  " + line
			}
			fmt.Fprintf(out, "%s%s\n", head, line)
			head = indent
		}
	}
}

// wrap breaks a text at spaces, none where it is empty.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// summary counts what is not ok.
func (r *Report) summary() string {
	counts := map[Level]int{}
	for _, f := range r.Findings {
		counts[f.Level]++
	}
	var parts []string
	if n := counts[Problem]; n > 0 {
		parts = append(parts, plural(n, "problem", "problems"))
	}
	if n := counts[Warning] + len(r.NotReached); n > 0 {
		parts = append(parts, plural(n, "warning", "warnings"))
	}
	if n := counts[Unknown]; n > 0 {
		parts = append(parts, plural(n, "thing that could not be looked at", "things that could not be looked at"))
	}
	switch {
	case len(parts) == 0:
		return "This node can be observed, and nothing about it is odd."
	case counts[Problem] > 0:
		return "This node cannot be observed: " + strings.Join(parts, ", ") + "."
	default:
		return strings.ToUpper(parts[0][:1]) + strings.Join(parts, ", ")[1:] + "."
	}
}
