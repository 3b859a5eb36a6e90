package provider

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// realRunner starts the driver of testdata/real for one library.
type realRunner struct {
	provider string
	// command is what the driver is started with, before the function.
	command []string
	// dir holds what stands in for libibverbs.
	dir string
}

func newRealRunner(t *testing.T, path, provider, version string) *realRunner {
	t.Helper()
	release, _, _ := strings.Cut(version, "-")
	r := &realRunner{provider: provider, dir: t.TempDir()}
	standIn(t, path, r.dir)
	driver := filepath.Join(r.dir, "driver")
	arguments := slices.Concat([]string{"-O2", "-Wall", "-Werror", "-pthread", "-o", driver}, layoutOf(t, provider, release),
		[]string{"testdata/real/driver.c", "testdata/real/polls.c", "testdata/real/posts.c"}, mustGlob(t, "testdata/real/"+provider+"*.c"))
	out, err := exec.Command("gcc", arguments...).CombinedOutput()
	require.NoError(t, err, string(out))
	r.command = []string{driver, path}
	if r.loads() {
		return r
	}
	r.command = append(newerLibc(t, r.dir), driver, path)
	require.True(t, r.loads(), "%s does not load with Debian's newer C library either", path)
	return r
}

// loads reports whether the library loads: a machine's C library may be too
// old for it.
func (r *realRunner) loads() bool {
	trial := exec.Command(r.command[0], append(r.command[1:], "post_send", "0")...)
	trial.Env = append(os.Environ(), "LD_LIBRARY_PATH="+r.dir)
	trial.Stdin = strings.NewReader("")
	out, _ := trial.CombinedOutput()
	return !strings.Contains(string(out), "not found")
}

// newerLibc unpacks a newer C library and returns how to start a program with
// it and with the libraries of a directory.
func newerLibc(t *testing.T, libraries string) []string {
	t.Helper()
	dir := t.TempDir()
	deb := filepath.Join(packageCache(t), "libc6_trixie_amd64.deb")
	out, err := exec.Command("dpkg-deb", "-x", deb, dir).CombinedOutput()
	require.NoError(t, err, "%s: run internal/provider/testdata/fetch.sh", out)
	lib := filepath.Join(dir, "usr/lib/x86_64-linux-gnu")
	return []string{filepath.Join(lib, "ld-linux-x86-64.so.2"), "--library-path", lib + ":" + libraries}
}

// standIn builds a libibverbs that has what the provider imports, in the same
// versions: the one that it was packaged with needs more libraries. The
// functions that run here call none of it but to log, the registration of the
// driver does nothing.
func standIn(t *testing.T, provider, dir string) {
	t.Helper()
	file, err := elf.Open(provider)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	imports, err := file.ImportedSymbols()
	require.NoError(t, err)
	var source strings.Builder
	versions := map[string][]string{}
	for _, s := range imports {
		if s.Library == "libibverbs.so.1" {
			fmt.Fprintf(&source, "long %s(void) { return 0; }\n", s.Name)
			versions[s.Version] = append(versions[s.Version], s.Name)
		}
	}
	var script strings.Builder
	for _, version := range sortedKeys(versions) {
		fmt.Fprintf(&script, "%s { global: %s; };\n", version, strings.Join(versions[version], "; "))
	}
	code, layout := filepath.Join(dir, "verbs.c"), filepath.Join(dir, "verbs.map")
	require.NoError(t, os.WriteFile(code, []byte(source.String()), 0o644))
	require.NoError(t, os.WriteFile(layout, []byte(script.String()), 0o644))
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", filepath.Join(dir, "libibverbs.so.1"), code,
		"-Wl,-soname,libibverbs.so.1", "-Wl,--version-script="+layout).CombinedOutput()
	require.NoError(t, err, string(out))
}

// realRun is a driver that runs, for one function.
type realRun struct {
	provider string
	input    io.Writer
	output   *bufio.Reader
	// calls is how often the last command called the function.
	calls int
}

func (r *realRunner) start(t *testing.T, target Target) *realRun {
	t.Helper()
	command := exec.Command(r.command[0], append(r.command[1:], target.Function.String(), fmt.Sprintf("%#x", target.Offset))...)
	command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+r.dir)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	require.NoError(t, err)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	run := &realRun{provider: r.provider, input: input, output: bufio.NewReader(output)}
	line, err := run.output.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return run
}

// realCall is a call that the driver tells of: struct call of
// testdata/real/driver.c, and the completions.
type realCall struct {
	realHeader
	contents [][sizeofWC]byte
}

type realHeader struct {
	Object, Failed                      uint64
	Waiting, Asked, Returned, Delivered int32
}

// command makes the driver do something and returns what it tells.
func (r *realRun) command(t *testing.T, letter byte) []realCall {
	t.Helper()
	_, err := r.input.Write([]byte{letter, '\n'})
	require.NoError(t, err)
	var calls []realCall
	for {
		var c realCall
		require.NoError(t, binary.Read(r.output, binary.NativeEndian, &c.realHeader))
		if c.Object == 0 {
			r.calls = int(c.Returned)
			return calls
		}
		c.contents = make([][sizeofWC]byte, c.Delivered)
		for i := range c.contents {
			_, err := io.ReadFull(r.output, c.contents[i][:])
			require.NoError(t, err)
		}
		calls = append(calls, c)
	}
}
