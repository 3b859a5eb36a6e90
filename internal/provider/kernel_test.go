package provider

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// uprobe counts the hits of an instruction in one process.
type uprobe struct{ fd int }

// attachUprobe asks the kernel for a probe; it checks the instruction, as the
// process has the file mapped.
func attachUprobe(path string, offset uint64, isReturn bool, pid int) (*uprobe, error) {
	raw, err := os.ReadFile("/sys/bus/event_source/devices/uprobe/type")
	if err != nil {
		return nil, err
	}
	kind, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return nil, err
	}
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return nil, err
	}
	attr := unix.PerfEventAttr{
		Type: uint32(kind), Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Ext1: uint64(uintptr(unsafe.Pointer(name))), Ext2: offset,
	}
	if isReturn {
		attr.Config = 1
	}
	fd, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	runtime.KeepAlive(name)
	if err != nil {
		return nil, fmt.Errorf("probe at %s+%#x (return %v): %w", path, offset, isReturn, err)
	}
	return &uprobe{fd}, nil
}

func (u *uprobe) hits(t *testing.T) uint64 {
	t.Helper()
	var b [8]byte
	_, err := unix.Read(u.fd, b[:])
	require.NoError(t, err)
	return binary.NativeEndian.Uint64(b[:])
}

func (u *uprobe) close() { _ = unix.Close(u.fd) }

// needUprobes skips where probes cannot be attached.
func needUprobes(t *testing.T, path string, pid int) {
	t.Helper()
	if _, err := os.Stat("/sys/bus/event_source/devices/uprobe/type"); err != nil {
		t.Skipf("this kernel has no uprobes: %v", err)
	}
	u, err := attachUprobe(path, 0x1000, false, pid)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		t.Skipf("needs CAP_PERFMON and CAP_SYS_PTRACE to attach probes: %v", err)
	}
	if err == nil {
		u.close()
	}
}

// TestKernelAcceptsOffsets attaches a probe at every offset found in the
// installed libraries, while a process has them loaded.
func TestKernelAcceptsOffsets(t *testing.T) {
	libraries := installed(t)
	var paths []string
	for _, name := range []string{"libibverbs", "rxe", "mlx5", "efa"} {
		if file, ok := libraries[name]; ok {
			paths = append(paths, file.Path)
		}
	}
	child := preloaded(t, paths...)
	f := NewFinder("")
	found, err := f.Process(child.Process.Pid)
	require.NoError(t, err)
	require.Len(t, found, len(paths))
	probes := 0
	for _, file := range found {
		opened, err := f.Open(file)
		require.NoError(t, err)
		path := fmt.Sprintf("/proc/self/fd/%d", opened.Fd())
		needUprobes(t, file.Path, child.Process.Pid)
		for _, target := range file.Library.Targets {
			for _, p := range []struct {
				offset   uint64
				isReturn bool
			}{{target.EntryOffset, false}, {target.ReturnOffset, true}} {
				u, err := attachUprobe(path, p.offset, p.isReturn, child.Process.Pid)
				require.NoError(t, err, "%s %s", file.Library.Name, target.Function)
				u.close()
				probes++
			}
		}
		require.NoError(t, opened.Close())
	}
	t.Logf("%d probes accepted", probes)
	assert.NotZero(t, probes)
}

// providerSource is a provider in C. The functions have the shapes that
// matter: a frame, a leaf, a tail call, a loop whose head is near the entry.
const providerSource = `
extern void verbs_set_ops(void *context, const void *ops);
volatile long sink;
static int sim_post_send(void *qp, void *wr, void **bad) { sink++; *bad = wr; return qp == wr; }
static __attribute__((noinline)) int post(void *qp, void *wr, void **bad) { int i; for (i = 0; i < 3; i++) sink += i; *bad = wr; return qp == wr; }
static int sim_post_recv(void *qp, void *wr, void **bad) { return post(qp, wr, bad); }
static int sim_post_srq_recv(void *srq, void *wr, void **bad) { return 0; }
static int sim_poll_cq(void *cq, int n, char *wc) { long i = 0; while (i < n) { wc[i] = (char)sink; i++; } return (int)i; }
static int sim_poll_cq_v1(void *cq, int n, char *wc) { do { n--; sink++; } while (n > 0); return 0; }
struct table { void *members[COUNT]; };
static const struct table common = { .members = { [SEND] = sim_post_send, [RECV] = sim_post_recv, [SRQ] = sim_post_srq_recv, [POLL] = sim_poll_cq } };
static const struct table newer = { .members = { [POLL] = sim_poll_cq_v1 } };
struct hardware { long version; struct table table; };
void *sim_alloc_context(void *context, int version) {
	verbs_set_ops(context, &common);
	if (version > 1) verbs_set_ops(context, &newer);
	return context;
}
typedef int (*function)(void *, void *, void *);
void sim_run(long n) {
	char wc[64]; void *bad; long i;
	volatile struct table t = common, u = newer;
	for (i = 0; i < n; i++) {
		((function)t.members[SEND])(wc, 0, &bad);
		((function)t.members[RECV])(wc, 0, &bad);
		((function)t.members[SRQ])(wc, 0, &bad);
		((function)t.members[POLL])(wc, (void *)5, wc);
		((function)u.members[POLL])(wc, (void *)5, wc);
	}
}
`

const driverSource = `
#include <stdio.h>
void sim_run(long n);
int main(void) { puts("ready"); fflush(stdout); getchar(); sim_run(1000); puts("done"); fflush(stdout); getchar(); return 0; }
`

// TestCompiledProvider compiles a provider in the ways that distributions do,
// finds its functions with and without symbols, and runs it under probes:
// each must fire exactly once a call.
func TestCompiledProvider(t *testing.T) {
	libraries := installed(t)
	file, err := os.ReadFile(libraries["libibverbs"].Path)
	require.NoError(t, err)
	_, slots, err := InspectVerbs(strings.NewReader(string(file)))
	require.NoError(t, err)
	tests := map[string]string{
		"gcc":              "gcc -O2",
		"gcc with cet":     "gcc -O2 -fcf-protection",
		"gcc no plt":       "gcc -O2 -fno-plt",
		"gcc no optimiser": "gcc -O0",
		"gcc size":         "gcc -Os -fcf-protection",
		"gcc O3 frame":     "gcc -O3 -fno-omit-frame-pointer",
		"gcc relr":         "gcc -O2 -Wl,-z,pack-relative-relocs",
		"gcc now":          "gcc -O2 -Wl,-z,now -Wl,-z,relro",
		"clang":            "clang-19 -O2 -fno-plt",
		"clang O0":         "clang-19 -O0 -fcf-protection",
	}
	for name, compiler := range tests {
		t.Run(name, func(t *testing.T) {
			tool, _, _ := strings.Cut(compiler, " ")
			if _, err := exec.LookPath(tool); err != nil {
				t.Skipf("no %s on this machine", tool)
			}
			library, stripped, driver := compileProvider(t, compiler, slots)
			named, err := InspectProvider(readAll(t, library), slots)
			require.NoError(t, err)
			bare, err := InspectProvider(readAll(t, stripped), slots)
			require.NoError(t, err)
			assert.Zero(t, bare.Unresolved, bare.Notes)
			var symbols []string
			for i, target := range named.Targets {
				symbols = append(symbols, target.Symbol)
				assert.Equal(t, target.Offset, bare.Targets[i].Offset)
			}
			assert.ElementsMatch(t, []string{"sim_post_send", "sim_post_recv", "sim_post_srq_recv", "sim_poll_cq", "sim_poll_cq_v1"}, symbols)
			runUnderProbes(t, driver, library, named)
		})
	}
}

func compileProvider(t *testing.T, compiler string, slots Slots) (library, stripped, driver string) {
	t.Helper()
	dir := t.TempDir()
	run := func(arguments ...string) {
		out, err := exec.Command(arguments[0], arguments[1:]...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	source, main := filepath.Join(dir, "provider.c"), filepath.Join(dir, "driver.c")
	require.NoError(t, os.WriteFile(source, []byte(providerSource), 0o644))
	require.NoError(t, os.WriteFile(main, []byte(driverSource), 0o644))
	library, stripped, driver = filepath.Join(dir, "libsim.so"), filepath.Join(dir, "stripped.so"), filepath.Join(dir, "driver")
	command := append(strings.Fields(compiler), "-w", "-shared", "-fPIC", "-o", library, source,
		fmt.Sprintf("-DCOUNT=%d", slots.Count), fmt.Sprintf("-DSEND=%d", slots.PostSend), fmt.Sprintf("-DRECV=%d", slots.PostRecv),
		fmt.Sprintf("-DSRQ=%d", slots.PostSRQRecv), fmt.Sprintf("-DPOLL=%d", slots.PollCQ), "-l:libibverbs.so.1")
	run(command...)
	run("strip", "-o", stripped, library)
	run("gcc", "-o", driver, main, library, "-Wl,-rpath,"+dir)
	return library, stripped, driver
}

func runUnderProbes(t *testing.T, driver, library string, found *Library) {
	t.Helper()
	command := exec.Command(driver)
	input, err := command.StdinPipe()
	require.NoError(t, err)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	lines := bufio.NewReader(output)
	expect := func(want string) {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want+"\n", line)
	}
	expect("ready")
	needUprobes(t, library, command.Process.Pid)
	type attached struct {
		what  string
		probe *uprobe
	}
	var probes []attached
	for _, target := range found.Targets {
		entry, err := attachUprobe(library, target.EntryOffset, false, command.Process.Pid)
		require.NoError(t, err)
		probes = append(probes, attached{target.Symbol + " entry", entry})
		returned, err := attachUprobe(library, target.ReturnOffset, true, command.Process.Pid)
		require.NoError(t, err)
		probes = append(probes, attached{target.Symbol + " return", returned})
	}
	_, err = input.Write([]byte("\n"))
	require.NoError(t, err)
	expect("done")
	for _, p := range probes {
		assert.EqualValues(t, 1000, p.probe.hits(t), p.what)
		p.probe.close()
	}
}
