package provider

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMirror asks apt with sources in both of its formats, as Debian 12 has them
// in images and after an upgrade.
func TestMirror(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("no apt-get: testdata/mirror.sh has nobody to ask")
	}
	const (
		security = "deb http://security.example/debian-security bookworm-security main\n"
		newer    = "deb http://newer.example/debian trixie main\n"
	)
	for name, test := range map[string]struct{ file, sources, want string }{
		"one line":       {"sources.list", security + "deb [arch=amd64] http://mirror.example/debian bookworm main\n", "http://mirror.example/debian/"},
		"of bookworm":    {"sources.list", newer + "deb http://mirror.example/debian bookworm contrib main\n", "http://mirror.example/debian/"},
		"of another one": {"sources.list", newer, "http://newer.example/debian/"},
		"deb822":         {"debian.sources", "Types: deb\n# a comment\nURIs: https://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n", "https://mirror.example/debian/"},
		"another system": {"sources.list", "deb http://archive.example/ubuntu noble main\n", ""},
		"none":           {"sources.list", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sources, config := filepath.Join(dir, test.file), filepath.Join(dir, "apt.conf")
			require.NoError(t, os.WriteFile(sources, []byte(test.sources), 0o644))
			require.NoError(t, os.WriteFile(config, []byte(`Dir::Etc::sourcelist "`+sources+`"; Dir::Etc::sourceparts "-";`), 0o644))
			command := exec.Command("testdata/mirror.sh")
			command.Env = append(os.Environ(), "APT_CONFIG="+config, "DEBIAN_MIRROR=")
			out, err := command.Output()
			if test.want == "" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want+"\n", string(out))
		})
	}
}
