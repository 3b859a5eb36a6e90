package packaging

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oneTime is that of the files in the packages of the tests.
var oneTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// sources is a copy of what packages are made of, with programs that do nothing, for
// tests that change it.
func sources(t *testing.T, version string) Packages {
	t.Helper()
	root := t.TempDir()
	for _, directory := range []string{"config", "LICENSES"} {
		require.NoError(t, os.CopyFS(filepath.Join(root, directory), os.DirFS(filepath.Join(repository, directory))))
	}
	write(t, filepath.Join(root, "LICENSE"), "Apache License\n", 0o644)
	for _, program := range []string{"otelcol-rdma", "rdmaradar"} {
		write(t, filepath.Join(root, "bin", program), "#!/bin/sh\n", 0o755)
		write(t, filepath.Join(root, "notices", program+".txt"), "of others\n", 0o644)
	}
	return Packages{
		Repository: root, Binaries: filepath.Join(root, "bin"), Notices: filepath.Join(root, "notices"), Version: version, Time: oneTime,
	}
}

// write writes a file that may be a program to be run at once: nobody forks as long as
// it is open, since the kernel runs no file that a child still has open for writing.
func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
}

// built builds a package and returns the paths of the .deb and the .rpm.
func built(t *testing.T, p Packages, description string) (deb, rpm string) {
	t.Helper()
	paths, err := p.Build(description, t.TempDir())
	require.NoError(t, err)
	require.Len(t, paths, 2)
	return paths[0], paths[1]
}

// run runs a command to its end, which has to be a good one, and returns what it said.
func run(t *testing.T, words ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), words[0], words[1:]...)
	command.Env = append(os.Environ(), "LC_ALL=C", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s: %s", strings.Join(words, " "), out)
	return string(out)
}

// emptyRoot is a root directory with a shell, in which package managers run the scripts
// of packages.
func emptyRoot(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("package managers change the root directory for scripts: run the test as root")
	}
	root := t.TempDir()
	busybox, err := exec.LookPath("busybox")
	require.NoError(t, err, "scripts/setup.sh unit installs busybox-static")
	content, err := os.ReadFile(busybox)
	require.NoError(t, err)
	write(t, filepath.Join(root, "bin/busybox"), string(content), 0o755)
	for _, applet := range []string{"sh", "rm", "grep", "sed"} {
		require.NoError(t, os.Symlink("busybox", filepath.Join(root, "bin", applet)))
	}
	// What makes and removes users does so in the one file that counts here.
	write(t, filepath.Join(root, "usr/bin/systemd-sysusers"), "#!/bin/sh\nset -e\n[ -e /usr/lib/sysusers.d/$1 ]\ngrep -q ^otelcol-rdma: /etc/passwd || echo otelcol-rdma:x:999:999::/:/bin/false >>/etc/passwd\n", 0o755)
	write(t, filepath.Join(root, "usr/bin/userdel"), "#!/bin/sh\nexec sed -i /^$1:/d /etc/passwd\n", 0o755)
	for _, directory := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/rpm", "var/cache", "tmp"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, directory), 0o755))
	}
	// What other packages have, so that no directory goes with the last file in it.
	for _, file := range []string{"var/lib/dpkg/status", "usr/share/doc/other", "usr/bin/other", "usr/lib/systemd/system/other", "usr/lib/systemd/system-generators/other", "usr/lib/sysusers.d/other", "etc/passwd", "dev/null"} {
		write(t, filepath.Join(root, file), "", 0o644)
	}
	return root
}

// tree lists what is below a root directory but the database of the package manager.
func tree(t *testing.T, root string) []string {
	t.Helper()
	var paths []string
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		below := strings.TrimPrefix(path, root)
		if below == "/var/lib/dpkg" || below == "/var/lib/rpm" {
			return fs.SkipDir
		}
		paths = append(paths, below)
		return err
	}))
	return paths
}

// checkInstalled holds the files of the agent's package to their modes.
func checkInstalled(t *testing.T, root string) {
	t.Helper()
	for path, mode := range map[string]fs.FileMode{
		"usr/bin/otelcol-rdma":                            0o755,
		"etc/otelcol-rdma/agent.yaml":                     0o644,
		"etc/otelcol-rdma/agent-telemetry.yaml":           0o644,
		"etc/otelcol-rdma/environment":                    0o600,
		"usr/lib/systemd/system/otelcol-rdma.service":     0o644,
		"usr/lib/systemd/system-generators/otelcol-rdma":  0o755,
		"usr/lib/sysusers.d/otelcol-rdma.conf":            0o644,
		"usr/share/doc/otelcol-rdma/copyright":            0o644,
		"usr/share/doc/otelcol-rdma/LICENSES/GPL-2.0.txt": 0o644,
		"usr/share/doc/otelcol-rdma/THIRD-PARTY.txt":      0o644,
	} {
		info, err := os.Stat(filepath.Join(root, path))
		if assert.NoError(t, err) {
			assert.Equal(t, mode, info.Mode().Perm(), path)
		}
	}
}

// edit changes the configuration as whoever runs the agent does.
func edit(t *testing.T, root string) {
	t.Helper()
	write(t, filepath.Join(root, "etc/otelcol-rdma/environment"), "GATEWAY=gateway.example.com:4317\n", 0o600)
	write(t, filepath.Join(root, "etc/otelcol-rdma/agent.yaml"), "mine: true\n", 0o644)
}

// checkKept checks that the configuration is as edit left it.
func checkKept(t *testing.T, root string) {
	t.Helper()
	for name, want := range map[string]string{"environment": "GATEWAY=gateway.example.com:4317\n", "agent.yaml": "mine: true\n"} {
		got, err := os.ReadFile(filepath.Join(root, "etc/otelcol-rdma", name))
		require.NoError(t, err)
		assert.Equal(t, want, string(got), name)
	}
}

// upgrade are the sources of the next version, in which the configuration is another.
func upgrade(t *testing.T) Packages {
	t.Helper()
	p := sources(t, "0.2.0")
	write(t, filepath.Join(p.Repository, "config/agent.yaml"), "theirs: true\n", 0o644)
	return p
}

// leaveState is what systemd and the agent leave in the directories of the service.
func leaveState(t *testing.T, root string) {
	t.Helper()
	for _, kind := range []string{"lib", "cache"} {
		write(t, filepath.Join(root, "var", kind, "otelcol-rdma/queue"), "", 0o600)
	}
}

func TestDeb(t *testing.T) {
	root := emptyRoot(t)
	before := tree(t, root)
	dpkg := func(words ...string) string {
		return run(t, append([]string{"dpkg", "--root=" + root, "--log=/dev/null", "--force-confold"}, words...)...)
	}

	deb, _ := built(t, sources(t, "0.1.0"), "otelcol-rdma")
	assert.Equal(t, "otelcol-rdma_0.1.0_amd64.deb", filepath.Base(deb))
	said := dpkg("--install", deb)
	assert.Contains(t, said, "set GATEWAY in /etc/otelcol-rdma/environment")
	checkInstalled(t, root)
	assert.Contains(t, users(t, root), "otelcol-rdma:")

	edit(t, root)
	leaveState(t, root)
	next, _ := built(t, upgrade(t), "otelcol-rdma")
	said = dpkg("--install", next)
	assert.NotContains(t, said, "set GATEWAY", "whoever upgrades has set it")
	checkKept(t, root)

	dpkg("--remove", "otelcol-rdma")
	assert.NoFileExists(t, filepath.Join(root, "usr/bin/otelcol-rdma"))
	assert.FileExists(t, filepath.Join(root, "var/lib/otelcol-rdma/queue"), "only a purge loses data")
	checkKept(t, root)
	dpkg("--purge", "otelcol-rdma")
	assert.Equal(t, before, tree(t, root))
	assert.Empty(t, users(t, root))
}

// A service that is masked, a unit that was deleted, a user that is in use, a systemd that
// does not answer: the package manager is not to get stuck on them.
func TestDebWhereSystemdRefuses(t *testing.T) {
	root := emptyRoot(t)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755))
	for _, program := range []string{"systemctl", "userdel"} {
		write(t, filepath.Join(root, "usr/bin", program), "#!/bin/sh\necho "+program+" refuses: $* >&2\nexit 1\n", 0o755)
	}
	first, _ := built(t, sources(t, "0.1.0"), "otelcol-rdma")
	next, _ := built(t, upgrade(t), "otelcol-rdma")
	for _, step := range []struct {
		words []string
		says  string
	}{
		{[]string{"--install", first}, "try-restart otelcol-rdma.service"},
		{[]string{"--install", next}, "try-restart otelcol-rdma.service"},
		{[]string{"--remove", "otelcol-rdma"}, "disable --now otelcol-rdma.service"},
		{[]string{"--purge", "otelcol-rdma"}, "userdel refuses"},
	} {
		said := run(t, append([]string{"dpkg", "--root=" + root, "--log=/dev/null", "--force-confold"}, step.words...)...)
		assert.Contains(t, said, step.says)
	}
	assert.NoDirExists(t, filepath.Join(root, "etc/otelcol-rdma"))
}

func users(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	require.NoError(t, err)
	return string(text)
}

func TestRPM(t *testing.T) {
	root := emptyRoot(t)
	rpm := func(words ...string) string {
		return run(t, append([]string{"rpm", "--root=" + root, "--dbpath=/var/lib/rpm"}, words...)...)
	}
	_, first := built(t, sources(t, "0.1.0"), "otelcol-rdma")
	assert.Equal(t, "otelcol-rdma-0.1.0-1.x86_64.rpm", filepath.Base(first))
	run(t, "rpm", "--checksig", "--nosignature", first)
	assert.ElementsMatch(t, []string{"/etc/otelcol-rdma/agent.yaml", "/etc/otelcol-rdma/agent-telemetry.yaml", "/etc/otelcol-rdma/environment"},
		strings.Fields(run(t, "rpm", "--query", "--package", "--configfiles", first)))

	// No package provides the shell of this root directory.
	said := rpm("--install", "--nodeps", first)
	assert.Contains(t, said, "set GATEWAY in /etc/otelcol-rdma/environment")
	checkInstalled(t, root)
	assert.Contains(t, users(t, root), "otelcol-rdma:")

	edit(t, root)
	_, next := built(t, upgrade(t), "otelcol-rdma")
	said = rpm("--upgrade", "--nodeps", next)
	assert.NotContains(t, said, "set GATEWAY")
	checkKept(t, root)
	assert.FileExists(t, filepath.Join(root, "etc/otelcol-rdma/agent.yaml.rpmnew"))

	rpm("--erase", "otelcol-rdma")
	assert.NoFileExists(t, filepath.Join(root, "usr/bin/otelcol-rdma"))
	assert.NoFileExists(t, filepath.Join(root, "usr/lib/systemd/system/otelcol-rdma.service"))
}

func TestPackageOfTheCommand(t *testing.T) {
	deb, rpm := built(t, sources(t, "0.1.0"), "rdmaradar")
	for _, listed := range []string{run(t, "dpkg-deb", "--contents", deb), run(t, "rpm", "--query", "--package", "--list", "-v", rpm)} {
		assert.Regexp(t, `(?m)^-rwxr-xr-x .*/usr/bin/rdmaradar$`, listed)
		assert.Regexp(t, `(?m)^-rwxr-xr-x .*/usr/share/rdmaradar/slurm/prolog.sh$`, listed)
		assert.Regexp(t, `/usr/share/doc/rdmaradar/THIRD-PARTY.txt\n`, listed)
		assert.Regexp(t, `/usr/share/doc/rdmaradar/LICENSES/BSD-2-Clause.txt\n`, listed, "the BPF programs are in it")
	}
}

func TestPackagesAreReproducible(t *testing.T) {
	for _, description := range []string{"otelcol-rdma", "rdmaradar"} {
		firstDeb, firstRPM := built(t, sources(t, "0.1.0"), description)
		secondDeb, secondRPM := built(t, sources(t, "0.1.0"), description)
		for first, second := range map[string]string{firstDeb: secondDeb, firstRPM: secondRPM} {
			one, err := os.ReadFile(first)
			require.NoError(t, err)
			other, err := os.ReadFile(second)
			require.NoError(t, err)
			assert.Equal(t, one, other, filepath.Base(first))
		}
	}
}

func TestPackageWithoutItsProgram(t *testing.T) {
	p := sources(t, "0.1.0")
	require.NoError(t, os.Remove(filepath.Join(p.Binaries, "otelcol-rdma")))
	_, err := p.Build("otelcol-rdma", t.TempDir())
	require.Error(t, err)
	assert.Contains(t, err.Error(), "bin/otelcol-rdma")
}
