package launch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFollowerReturnsWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := Follower{Path: path}
	defer f.Close()

	read := func() []string {
		t.Helper()
		lines, err := f.Lines()
		require.NoError(t, err)
		var texts []string
		for _, line := range lines {
			texts = append(texts, string(line))
		}
		return texts
	}
	assert.Empty(t, read(), "the file does not exist yet")

	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	write := func(text string) {
		t.Helper()
		_, err := file.WriteString(text)
		require.NoError(t, err)
	}
	write("one\ntw")
	assert.Equal(t, []string{"one"}, read())
	assert.Empty(t, read())
	write("o\nthree\n")
	assert.Equal(t, []string{"two", "three"}, read())
}

func TestFollowerRefusesAnEndlessLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, make([]byte, maxLine+2), 0o600))
	f := Follower{Path: path}
	defer f.Close()

	_, err := f.Lines()
	if err == nil {
		_, err = f.Lines()
	}
	assert.ErrorContains(t, err, "longer than")
}
