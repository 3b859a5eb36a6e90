package packaging

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of a program that is built of modules under several licences, each is there.
func TestNotices(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "packages")
	run(t, "go", "build", "-buildvcs=false", "-o", program, "./cmd/packages")
	text, err := Notices(program)
	require.NoError(t, err)
	for _, part := range []string{"Go go1.", "Copyright 2009 The Go Authors", "github.com/goreleaser/nfpm/v2 v", "github.com/Masterminds/semver/v3 v", "sigs.k8s.io/yaml v"} {
		assert.Contains(t, string(text), part)
	}
}

func TestNoticesHaveEachTextOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for path, text := range map[string]string{
		"a/LICENSE": "MIT\n", "a/license.go": "package a", "b/LICENCE.txt": "MIT", "c/COPYING": "BSD\n", "c/NOTICE": "by C\n", "d/README": "",
	} {
		write(t, filepath.Join(root, path), text, 0o644)
	}
	all := collection{}
	for _, module := range []string{"b", "c", "a"} {
		require.NoError(t, all.add(module+" v1", filepath.Join(root, module)))
	}
	rule := "\n" + "--------------------------------------------------------------------------------" + "\n\n"
	assert.Equal(t, "a v1\nb v1\n\nMIT\n"+rule+"c v1\n\nBSD\n"+rule+"c v1\n\nby C\n", string(all.text()))
	require.ErrorContains(t, all.add("d v1", filepath.Join(root, "d")), "licence of d v1: there is none")
	require.ErrorContains(t, all.add("e v1", filepath.Join(root, "e")), "licence of e v1: ")
}

func TestNoticesOfWhatIsNoProgram(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "script")
	write(t, path, "#!/bin/sh\n", 0o755)
	_, err := Notices(path)
	require.ErrorContains(t, err, "licences of "+path)
}

func TestEscaped(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "github.com/!masterminds/semver/v3", escaped("github.com/Masterminds/semver/v3"))
}
