package provider

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// recorded is a proc file system in a directory. Devices and inodes are those
// of the files that the test puts there, as the kernel would name them.
type recorded struct {
	t    *testing.T
	proc string
	next uint64
}

func newRecorded(t *testing.T) *recorded {
	return &recorded{t: t, proc: t.TempDir(), next: 0x7f0000000000}
}

// container makes a root directory with files.
func (r *recorded) container(files map[string][]byte) string {
	r.t.Helper()
	root := r.t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(r.t, os.WriteFile(path, content, 0o644))
	}
	return root
}

// process adds a process with that root directory and lines of its maps.
func (r *recorded) process(pid int, root string, lines ...string) {
	r.t.Helper()
	dir := filepath.Join(r.proc, fmt.Sprint(pid))
	require.NoError(r.t, os.MkdirAll(filepath.Join(dir, "map_files"), 0o755))
	require.NoError(r.t, os.Symlink(root, filepath.Join(dir, "root")))
	require.NoError(r.t, os.WriteFile(filepath.Join(dir, "maps"), []byte(strings.Join(lines, "")), 0o644))
	require.NoError(r.t, os.WriteFile(filepath.Join(dir, "mem"), nil, 0o644))
}

// maps returns the line for an executable mapping of a file.
func (r *recorded) maps(file, shownAs string) string {
	r.t.Helper()
	opened, err := os.Open(file)
	require.NoError(r.t, err)
	defer func() { _ = opened.Close() }()
	key, err := identify(opened)
	require.NoError(r.t, err)
	r.next += 0x10000
	return fmt.Sprintf("%x-%x r-xp 00000000 %02x:%02x %d                     %s\n", r.next, r.next+0x1000,
		unix.Major(key.device), unix.Minor(key.device), key.inode, shownAs)
}

func (r *recorded) finder() *Finder {
	f := NewFinder(r.proc)
	f.machine = elf.EM_X86_64
	return f
}

func names(files []File) []string {
	var list []string
	for _, f := range files {
		list = append(list, f.DisplayPath+" "+f.Library.Kind.String())
	}
	return list
}

func TestFinderProcess(t *testing.T) {
	r := newRecorded(t)
	root := r.container(map[string][]byte{
		"opt/wheel/libA-3f2.so": testVerbs(), "opt/wheel/libB-9c1.so": testProvider(), "bin/app": []byte("#!/bin/sh"),
	})
	at := func(name string) string { return r.maps(filepath.Join(root, name), name) }
	r.process(10, root, at("/bin/app"), at("/opt/wheel/libB-9c1.so"), at("/opt/wheel/libA-3f2.so"), at("/opt/wheel/libA-3f2.so"),
		"7f0000000000-7f0000001000 r-xp 00000000 00:00 0                          [vdso]\n")
	f := r.finder()
	found, err := f.Process(10)
	require.NoError(t, err)
	assert.Equal(t, []string{"/opt/wheel/libB-9c1.so provider", "/opt/wheel/libA-3f2.so verbs"}, names(found))
	assert.Equal(t, filepath.Join(r.proc, "10/root/opt/wheel/libB-9c1.so"), found[0].Path)
	assert.NotEmpty(t, found[0].Library.Find(PostSend))
	assert.EqualValues(t, 3, f.Counters().Examined)

	again, err := f.Process(10)
	require.NoError(t, err)
	assert.Equal(t, found, again)
	assert.Same(t, found[0].Library, again[0].Library)
	assert.EqualValues(t, 3, f.Counters().Examined, "known files are not read again")

	opened, err := f.Open(found[0])
	require.NoError(t, err)
	assert.NoError(t, opened.Close())
}

// TestFinderLeavesFilesOut: a file that is not taken is not read, in a process or
// installed.
func TestFinderLeavesFilesOut(t *testing.T) {
	r := newRecorded(t)
	root := r.container(map[string][]byte{
		"usr/lib/libibverbs.so.1": testVerbs(), "opt/libA.so": testVerbs(), "opt/libB.so": testProvider(), "other/libC.so": testProvider(),
	})
	at := func(name string) string { return r.maps(filepath.Join(root, name), name) }
	r.process(10, root, at("/opt/libA.so"), at("/opt/libB.so"), at("/other/libC.so"))
	f := r.finder().WithFiles(func(path string) bool { return strings.HasPrefix(path, "/opt/") })
	found, err := f.Process(10)
	require.NoError(t, err)
	assert.Equal(t, []string{"/opt/libA.so verbs", "/opt/libB.so provider"}, names(found))
	installed, err := f.Installed(root)
	require.NoError(t, err)
	assert.Empty(t, installed)
	assert.EqualValues(t, 2, f.Counters().Examined)
}

// TestFinderSharesAnalyses: copies of a library are analysed once; a copy
// with another table is not taken for the same.
func TestFinderSharesAnalyses(t *testing.T) {
	r := newRecorded(t)
	genuine := testProviderVariant(compact)
	forged := testProviderVariant(func(e *testELF) {
		compact(e)
		// post_recv is post_send too.
		copy(e.data[16:24], e.data[24:32])
	})
	for pid, provider := range [][]byte{genuine, genuine, forged} {
		root := r.container(map[string][]byte{"v.so": testVerbs(), "p.so": provider})
		r.process(pid+1, root, r.maps(root+"/v.so", "/v.so"), r.maps(root+"/p.so", "/p.so"))
	}
	f := r.finder()
	found, errs := f.All(t.Context())
	require.Empty(t, errs)
	require.Len(t, found, 6)
	assert.Same(t, found[1].Library, found[3].Library)
	assert.NotEqual(t, found[1].ID, found[3].ID)
	assert.Equal(t, found[1].Library.Digest, found[5].Library.Digest)
	assert.Empty(t, found[5].Library.Find(PostSend))
}

func TestFinderAllReturnsFilesOnce(t *testing.T) {
	r := newRecorded(t)
	root := r.container(map[string][]byte{"v.so": testVerbs(), "app": []byte("x")})
	for pid := 1; pid <= 20; pid++ {
		r.process(pid, root, r.maps(root+"/app", "/app"), r.maps(root+"/v.so", "/v.so"))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(r.proc, "self"), 0o755))
	f := r.finder()
	found, errs := f.All(t.Context())
	require.Empty(t, errs)
	assert.Len(t, found, 1)
	assert.Equal(t, Counters{Processes: 20, Examined: 2}, f.Counters())
}

// TestFinderReplaced: the path leads to another file than the mapped one,
// which is found through map_files; where that fails the error says so.
func TestFinderReplaced(t *testing.T) {
	r := newRecorded(t)
	root := r.container(map[string][]byte{"v.so": testProvider(), "old/v.so": testVerbs(), "deleted": testVerbs()})
	replaced := r.maps(root+"/old/v.so", "/v.so")
	deleted := strings.TrimSuffix(r.maps(root+"/deleted", "/gone.so"), "\n") + " (deleted)\n"
	r.process(7, root, replaced, deleted)
	f := r.finder()
	_, err := f.Process(7)
	require.ErrorIs(t, err, fs.ErrNotExist)

	link := func(line, file string) {
		name, _, _ := strings.Cut(line, " ")
		require.NoError(t, os.Symlink(file, filepath.Join(r.proc, "7/map_files", name)))
	}
	link(replaced, root+"/old/v.so")
	link(deleted, root+"/deleted")
	found, err := f.Process(7)
	require.NoError(t, err)
	assert.Equal(t, []string{"/v.so verbs", "/gone.so verbs"}, names(found))
	assert.Contains(t, found[0].Path, "map_files")

	require.NoError(t, os.Remove(filepath.Join(root, "old/v.so")))
	_, err = f.Open(found[0])
	require.Error(t, err)
}

// TestFinderContained: a link in a container does not lead out of it.
func TestFinderContained(t *testing.T) {
	r := newRecorded(t)
	outside := filepath.Join(t.TempDir(), "secret.so")
	require.NoError(t, os.WriteFile(outside, testVerbs(), 0o644))
	root := r.container(nil)
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "v.so")))
	r.process(3, root, r.maps(outside, "/v.so"))
	_, err := r.finder().Process(3)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestFinderNoSideEffects: a mapping of a pipe or a device is not opened.
func TestFinderNoSideEffects(t *testing.T) {
	r := newRecorded(t)
	root := r.container(nil)
	pipe := filepath.Join(root, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	var stat unix.Stat_t
	require.NoError(t, unix.Stat(pipe, &stat))
	r.process(3, root, fmt.Sprintf("1000-2000 r-xp 00000000 %02x:%02x %d /pipe\n", unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino))
	found, err := r.finder().Process(3)
	require.NoError(t, err)
	assert.Empty(t, found)
}

// TestFinderChanged: a file that is written again is analysed again, and Open
// refuses the old identity.
func TestFinderChanged(t *testing.T) {
	r := newRecorded(t)
	root := r.container(map[string][]byte{"v.so": []byte("nothing")})
	path := filepath.Join(root, "v.so")
	r.process(3, root, r.maps(path, "/v.so"))
	f := r.finder()
	found, err := f.Process(3)
	require.NoError(t, err)
	assert.Empty(t, found)
	require.NoError(t, os.WriteFile(path, testVerbs(), 0o644))
	found, err = f.Process(3)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, os.WriteFile(path, append(testVerbs(), 0), 0o644))
	_, err = f.Open(found[0])
	require.ErrorIs(t, err, ErrChanged)
}

// TestFinderShowsNoControlCharacters: a file is found under whatever name a
// process gives it, which is only shown in parts.
func TestFinderShowsNoControlCharacters(t *testing.T) {
	const name, clean = "/v\x1b[2J\u009b\u202e.so", "/v\uFFFD[2J\uFFFD\uFFFD.so"
	r := newRecorded(t)
	root := r.container(map[string][]byte{name: testVerbs()})
	r.process(3, root, r.maps(root+name, name))
	f := r.finder()
	found, err := f.Process(3)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, clean, found[0].DisplayPath)
	opened, err := f.Open(found[0])
	require.NoError(t, err)
	require.NoError(t, opened.Close())

	require.NoError(t, os.Remove(root+name))
	_, err = f.Open(found[0])
	require.ErrorContains(t, err, clean)
	require.NotContains(t, err.Error(), "\x1b")
	require.NoError(t, os.WriteFile(root+name, append(testVerbs(), 0), 0o644))
	_, err = f.Open(found[0])
	require.ErrorIs(t, err, ErrChanged)
	require.ErrorContains(t, err, clean)
}

// TestFinderRewritten: a file that is rewritten between analysis and attach is
// refused, although its owner gave it the time and the size that it had. The same
// file under fewer names is still the same.
func TestFinderRewritten(t *testing.T) {
	r := newRecorded(t)
	root := r.container(map[string][]byte{"v.so": testVerbs()})
	path := filepath.Join(root, "v.so")
	r.process(3, root, r.maps(path, "/v.so"))
	f := r.finder()
	first, err := f.Process(3)
	require.NoError(t, err)
	require.Len(t, first, 1)

	old, err := os.Stat(path)
	require.NoError(t, err)
	waitForCtime(t, path)
	changed := testVerbs()
	changed[len(changed)-1] ^= 1
	require.NoError(t, os.WriteFile(path, changed, 0o644))
	require.NoError(t, os.Chtimes(path, old.ModTime(), old.ModTime()))
	_, err = f.Open(first[0])
	require.ErrorIs(t, err, ErrChanged)

	again, err := f.Process(3)
	require.NoError(t, err)
	require.Len(t, again, 1)
	opened, err := f.Open(again[0])
	require.NoError(t, err)
	require.NoError(t, opened.Close())

	require.NoError(t, os.Link(path, filepath.Join(root, "backup.so")))
	linked, err := f.Process(3)
	require.NoError(t, err)
	require.Len(t, linked, 1)
	assert.Equal(t, again[0].ID, linked[0].ID)
	opened, err = f.Open(linked[0])
	require.NoError(t, err)
	require.NoError(t, opened.Close())
}

// waitForCtime waits until the file system gives new changes another time than
// that of the file's last one: it may stamp with the tick of a clock.
func waitForCtime(t *testing.T, path string) {
	t.Helper()
	changed := func(path string) unix.Timespec {
		var s unix.Stat_t
		require.NoError(t, unix.Stat(path, &s))
		return s.Ctim
	}
	probe := filepath.Join(t.TempDir(), "probe")
	require.Eventually(t, func() bool {
		require.NoError(t, os.WriteFile(probe, nil, 0o644))
		defer func() { _ = os.Remove(probe) }()
		return changed(probe) != changed(path)
	}, 10*time.Second, time.Millisecond)
}

func TestFinderCountsRefusals(t *testing.T) {
	r := newRecorded(t)
	class32, riscv := testProvider(), testProvider()
	class32[elf.EI_CLASS] = byte(elf.ELFCLASS32)
	riscv[18] = byte(elf.EM_RISCV)
	plain32 := append([]byte(elf.ELFMAG), byte(elf.ELFCLASS32), 1, 1)
	plain32 = append(plain32, make([]byte, 100)...)
	root := r.container(map[string][]byte{"32.so": class32, "libc32.so": plain32, "riscv.so": riscv, "bad.so": testVerbs()[:0x300], "alone.so": testProvider()})
	r.process(3, root, r.maps(root+"/32.so", "/32.so"), r.maps(root+"/libc32.so", "/libc32.so"), r.maps(root+"/riscv.so", "/riscv.so"),
		r.maps(root+"/bad.so", "/bad.so"), r.maps(root+"/alone.so", "/alone.so"))
	f := r.finder()
	for range 2 {
		found, err := f.Process(3)
		assert.Empty(t, found)
		require.ErrorIs(t, err, Err32Bit)
		require.ErrorIs(t, err, ErrUnresolved, "a provider without libibverbs")
	}
	assert.Equal(t, Counters{Processes: 2, Examined: 5, Refused32Bit: 1, RefusedMachine: 1, Malformed: 1, Unresolved: 1}, f.Counters())
}

// TestFinderTwoInterfaces: each provider takes the layout of the libibverbs
// with its interface, and disagreement is an error.
func TestFinderTwoInterfaces(t *testing.T) {
	one := candidate{known: &known{kind: Verbs, library: &Library{ABI: "IBVERBS_PRIVATE_34"}, slots: smallSlots()}}
	other := candidate{known: &known{kind: Verbs, library: &Library{ABI: "IBVERBS_PRIVATE_65"}, slots: Slots{Count: 93}}}
	differs := candidate{known: &known{kind: Verbs, library: &Library{ABI: "IBVERBS_PRIVATE_34"}, slots: Slots{Count: 76}}}
	slots, err := slotsBeside("IBVERBS_PRIVATE_34", []candidate{other, one, one})
	require.NoError(t, err)
	assert.Equal(t, smallSlots(), slots)
	_, err = slotsBeside("IBVERBS_PRIVATE_34", []candidate{one, differs})
	require.ErrorIs(t, err, ErrUnresolved)
	_, err = slotsBeside("IBVERBS_PRIVATE_22", []candidate{one, other})
	require.ErrorIs(t, err, ErrUnresolved)
}

func TestFinderProcessGone(t *testing.T) {
	r := newRecorded(t)
	f := r.finder()
	_, err := f.Process(99)
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Zero(t, f.Counters().Unreadable)
	_, errs := NewFinder(filepath.Join(r.proc, "nowhere")).All(t.Context())
	require.Len(t, errs, 1)
}

func TestPermissionNamesTheCapability(t *testing.T) {
	err := permission("read", "/proc/1/maps", "CAP_SYS_PTRACE", unix.EACCES)
	var denied *PermissionError
	require.ErrorAs(t, err, &denied)
	assert.Equal(t, "CAP_SYS_PTRACE", denied.Capability)
	assert.ErrorIs(t, err, fs.ErrPermission)
	assert.Contains(t, err.Error(), "grant CAP_SYS_PTRACE")
	assert.False(t, errors.As(permission("read", "x", "y", unix.ENOENT), &denied))
}

func TestRememberIsBounded(t *testing.T) {
	m := map[int]int{}
	for i := range 1000 {
		remember(m, 16, i, i)
		require.LessOrEqual(t, len(m), 16)
		require.Contains(t, m, i)
	}
}

func TestInstalledInTree(t *testing.T) {
	r := newRecorded(t)
	root := r.container(map[string][]byte{
		"etc/ld.so.conf":                         []byte("# comment\ninclude /etc/ld.so.conf.d/*.conf\n/opt/a=libc6\n"),
		"etc/ld.so.conf.d/x.conf":                []byte("/opt/b\ninclude /etc/ld.so.conf\n"),
		"opt/b/libibverbs.so.1.0":                testVerbs(),
		"opt/b/libother.so":                      testVerbs(),
		"usr/lib/x86_64-linux-gnu/libp.so.1":     testProvider(),
		"usr/lib/x86_64-linux-gnu/libibverbs/ok": nil,
	})
	require.NoError(t, os.Symlink("/opt/b/libibverbs.so.1.0", filepath.Join(root, "opt/b/libibverbs.so.1")))
	require.NoError(t, os.Symlink("../libp.so.1", filepath.Join(root, "usr/lib/x86_64-linux-gnu/libibverbs/libp-rdmav34.so")))
	f := r.finder()
	found, err := f.Installed(root)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"/opt/b/libibverbs.so.1 verbs", "/usr/lib/x86_64-linux-gnu/libibverbs/libp-rdmav34.so provider"}, names(found))
	for _, file := range found {
		_, err := os.Stat(file.Path)
		require.NoError(t, err, "a path from here, though a link is absolute")
		opened, err := f.Open(file)
		require.NoError(t, err)
		require.NoError(t, opened.Close())
	}
}

// preloaded starts a process that has the libraries loaded.
func preloaded(t *testing.T, libraries ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command("/bin/sh", "-c", "echo ready; read -r line")
	command.Env = append(os.Environ(), "LD_PRELOAD="+strings.Join(libraries, ":"))
	input, err := command.StdinPipe()
	require.NoError(t, err)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return command
}

// installed returns the libraries of this machine by name, or skips.
func installed(t *testing.T) map[string]File {
	t.Helper()
	files, err := NewFinder("").Installed("/")
	require.NoError(t, err)
	byName := map[string]File{}
	for _, f := range files {
		byName[f.Library.Name] = f
	}
	if byName["libibverbs"].Library == nil || byName["rxe"].Library == nil {
		t.Skip("libibverbs and its rxe provider are not installed on this machine (Debian: libibverbs1, ibverbs-providers)")
	}
	return byName
}

func TestFinderRealProcess(t *testing.T) {
	libraries := installed(t)
	child := preloaded(t, libraries["libibverbs"].Path, libraries["rxe"].Path)
	f := NewFinder("")
	found, err := f.Process(child.Process.Pid)
	require.NoError(t, err)
	byName := map[string]File{}
	for _, file := range found {
		byName[file.Library.Name] = file
	}
	for _, name := range []string{"libibverbs", "rxe"} {
		require.Contains(t, byName, name)
		assert.Equal(t, libraries[name].ID, byName[name].ID, "installed and mapped are the same file")
		assert.Equal(t, libraries[name].Library.Targets, byName[name].Library.Targets)
		opened, err := f.Open(byName[name])
		require.NoError(t, err)
		require.NoError(t, opened.Close())
	}
	all, _ := f.All(t.Context())
	ids := map[FileID]int{}
	for _, file := range all {
		ids[file.ID]++
	}
	assert.Equal(t, 1, ids[libraries["rxe"].ID])
}

// TestFinderDeletedLibrary: an upgrade removes the file that a process still
// uses.
func TestFinderDeletedLibrary(t *testing.T) {
	libraries := installed(t)
	content, err := os.ReadFile(libraries["libibverbs"].Path)
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "renamed.so")
	require.NoError(t, os.WriteFile(copied, content, 0o755))
	child := preloaded(t, copied)
	require.NoError(t, os.Remove(copied))
	require.NoError(t, os.WriteFile(copied, []byte("another file at the same path"), 0o644))
	f := NewFinder("")
	found, err := f.Process(child.Process.Pid)
	var denied *PermissionError
	if errors.As(err, &denied) {
		t.Skipf("needs to read map_files: %v", err)
	}
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, copied, found[0].DisplayPath)
	assert.Equal(t, libraries["libibverbs"].Library.Digest, found[0].Library.Digest)
	opened, err := f.Open(found[0])
	require.NoError(t, err)
	require.NoError(t, opened.Close())
}

// TestFinderOverlay: on overlayfs, stat and /proc/PID/maps may name different
// devices for the same file; which, depends on the kernel.
func TestFinderOverlay(t *testing.T) {
	libraries := installed(t)
	base := t.TempDir()
	dir := func(name string) string {
		path := filepath.Join(base, name)
		require.NoError(t, os.Mkdir(path, 0o755))
		return path
	}
	lower, upper, work, merged := dir("lower"), dir("upper"), dir("work"), dir("merged")
	content, err := os.ReadFile(libraries["libibverbs"].Path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(lower, "v.so"), content, 0o755))
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work)
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		t.Skipf("cannot mount overlayfs here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(merged, unix.MNT_DETACH) })
	library := filepath.Join(merged, "v.so")
	child := preloaded(t, library)
	f := NewFinder("")
	found, err := f.Process(child.Process.Pid)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Path, "/root/")
	var stat unix.Stat_t
	require.NoError(t, unix.Stat(library, &stat))
	t.Logf("stat: device %d inode %d; mapped: device %d inode %d", stat.Dev, stat.Ino, found[0].ID.Device, found[0].ID.Inode)
	opened, err := f.Open(found[0])
	require.NoError(t, err)
	require.NoError(t, opened.Close())
}

func BenchmarkFinderAll(b *testing.B) {
	f := NewFinder("")
	for b.Loop() {
		f.All(b.Context())
	}
	b.ReportMetric(float64(f.Counters().Processes)/float64(b.N), "processes")
}
