package tracer

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The document has the same words; UPDATE_GOLDEN=1 writes them.
func TestDocumentHasCapabilities(t *testing.T) {
	const path = "../../docs/configuration.md"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var table strings.Builder
	table.WriteString("| capability | for | without it |\n| --- | --- | --- |\n")
	for _, c := range Capabilities() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", c.Name, c.For, c.Without)
	}
	place := regexp.MustCompile(`(?s)(<!-- capabilities -->\n)(.*?)(<!-- /capabilities -->)`)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		updated := place.ReplaceAllString(string(text), "${1}"+strings.ReplaceAll(table.String(), "$", "$$")+"${3}")
		require.NoError(t, os.WriteFile(path, []byte(updated), 0o644))
		return
	}
	found := place.FindStringSubmatch(string(text))
	require.NotNil(t, found)
	assert.Equal(t, table.String(), found[2], "UPDATE_GOLDEN=1 writes it")
}
