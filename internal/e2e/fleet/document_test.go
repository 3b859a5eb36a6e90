//go:build backends

package fleet

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// document has the arithmetic, which a test of the receiver writes and holds.
const document = "../../../docs/cost.md"

// cells are those of the row of a table that begins with a cell.
func cells(t *testing.T, first string) []string {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if row[0] == first {
			return row
		}
	}
	t.Fatalf("%s has no row %q", document, first)
	return nil
}

// number reads one as the document writes it: 1,086 or 9.2 KB.
func number(t *testing.T, text string) float64 {
	t.Helper()
	digits, unit, _ := strings.Cut(text, " ")
	scale, known := map[string]float64{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
	require.True(t, known, text)
	value, err := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
	require.NoError(t, err)
	return value * scale
}

// documented is what docs/cost.md says of one node with the job: series, compressed
// bytes of a day, and bytes that Prometheus keeps of it.
type documented struct{ series, compressed, kept float64 }

func readDocument(t *testing.T) documented {
	t.Helper()
	node, fleet := cells(t, "with the job, by default"), cells(t, "1")
	return documented{series: number(t, node[1]), compressed: number(t, node[4]), kept: number(t, fleet[4])}
}

// troubles is what docs/cost.md says of a node on which something is slow all the time:
// compressed bytes of spans of a day, and of a verdict.
type troubles struct{ spans, verdict float64 }

func readTroubles(t *testing.T) troubles {
	t.Helper()
	perDay, _, atTheMost := strings.Cut(cells(t, "span of a slow request")[3], " at the most")
	require.True(t, atTheMost)
	return troubles{spans: number(t, perDay), verdict: number(t, cells(t, "log record `rdma.verdict`")[2])}
}
