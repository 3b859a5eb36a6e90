package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const document = "../../docs/rdmaradar.md"

// flagsOf are the flags of a command as its help lists them.
func flagsOf(t *testing.T, name string) string {
	t.Helper()
	cmd, _, err := rootCommand().Find([]string{name})
	require.NoError(t, err)
	var indented strings.Builder
	for line := range strings.Lines(cmd.Flags().FlagUsages()) {
		indented.WriteString("    " + strings.TrimRight(line, " \n") + "\n")
	}
	return "\n" + indented.String() + "\n"
}

// The document has the flags of every command; UPDATE_GOLDEN=1 writes them.
func TestDocumentHasFlags(t *testing.T) {
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	place := regexp.MustCompile(`(?s)<!-- flags (\w+) -->\n(.*?)<!-- /flags -->`)
	found := place.FindAllStringSubmatch(string(text), -1)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		updated := place.ReplaceAllStringFunc(string(text), func(old string) string {
			name := place.FindStringSubmatch(old)[1]
			return "<!-- flags " + name + " -->\n" + flagsOf(t, name) + "<!-- /flags -->"
		})
		require.NoError(t, os.WriteFile(document, []byte(updated), 0o644))
		return
	}
	require.Len(t, found, len(rootCommand().Commands()))
	for _, part := range found {
		assert.Equal(t, flagsOf(t, part[1]), part[2], "UPDATE_GOLDEN=1 writes it")
	}
}
