package provider

import (
	"crypto/sha256"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sumsFile holds checksums of what the analysis finds, and the version that
// finds it. It is written with -update.
const sumsFile = "testdata/analyser.json"

type analyserSums struct {
	Version int
	// Sums are by release and architecture those of the rows of both tables, and
	// those of the files that the cache keeps of providers made by hand.
	Sums map[string]checksum
}

// TestAnalyserVersion fails when the analysis finds something else, or writes it
// to disk in another way, under the same version: caches in the field would go
// on giving the old result.
func TestAnalyserVersion(t *testing.T) {
	got := analyserSums{Version: analyserVersion, Sums: map[string]checksum{}}
	for name, file := range map[string][]byte{"by hand, amd64": testSiteProvider(t), "by hand, arm64": testSiteProviderA64(t)} {
		_, content := storedOf(t, file)
		got.Sums[name] = sha256.Sum256(content)
	}
	tables := map[string][]json.RawMessage{}
	for _, file := range []string{offsetsFile, sitesFile} {
		rows := map[string]json.RawMessage{}
		readJSON(t, file, &rows)
		for release, row := range rows {
			tables[release] = append(tables[release], row)
		}
	}
	for release, rows := range tables {
		content, err := json.Marshal(rows)
		require.NoError(t, err)
		got.Sums[release] = sha256.Sum256(content)
	}
	var want analyserSums
	readJSON(t, sumsFile, &want)
	const raise = "%s: what is found has changed: raise analyserVersion, so that no cache on disk gives the old result"
	require.GreaterOrEqual(t, got.Version, want.Version, "analyserVersion went back")
	if got.Version == want.Version {
		for release, sum := range want.Sums {
			if have, ok := got.Sums[release]; ok {
				require.Equal(t, sum.String(), have.String(), raise, release)
			}
		}
	}
	if *update {
		content, err := json.MarshalIndent(got, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(sumsFile, append(content, '\n'), 0o644))
		return
	}
	assert.Equal(t, want, got, "go test -run 'Package|AnalyserVersion' -update writes %s", sumsFile)
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, into))
}
