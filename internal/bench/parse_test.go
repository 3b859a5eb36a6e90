package main

import (
	"bufio"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseLoop(t *testing.T) {
	got, err := parseLoop([]byte(`{"poll_ns":{"0":1.5,"10":2,"100":3,"1000":4},"post_ns":5,"polls":6,"completions":7,"posts":8}`))
	require.NoError(t, err)
	assert.Equal(t, loopResult{
		PollNs: map[string]float64{"0": 1.5, "10": 2, "100": 3, "1000": 4},
		PostNs: 5, Polls: 6, Completions: 7, Posts: 8,
	}, got)
	_, err = parseLoop([]byte(`{"poll_ns":{"0":1.5}}`))
	require.ErrorContains(t, err, "10 empty polls")
	_, err = parseLoop([]byte("loop: no"))
	require.ErrorContains(t, err, "loop: no")
}

func TestObjects(t *testing.T) {
	o := bpfObjects{links: map[uint32]bool{}, programs: map[uint32]bool{}, maps: map[uint32]uint64{}}
	for _, text := range []string{
		"pos:\t0\nflags:\t02\nlink_type:\tuprobe_multi\nlink_id:\t7\nprog_tag:\tdeadbeef\nprog_id:\t99\n",
		"pos:\t0\nprog_type:\t2\nprog_id:\t12\n",
		"pos:\t0\nmap_type:\t2\nmemlock:\t4096\nmap_id:\t3\n",
		"pos:\t0\nmap_type:\t2\nmemlock:\t4096\nmap_id:\t3\n", // A second descriptor of it.
		"pos:\t0\nmap_type:\t1\nmemlock:\t100\nmap_id:\t4\n",
		"pos:\t0\nflags:\t0100002\nmnt_id:\t9\nino:\t5\n",
		"", "nonsense", ":", "map_id: x",
	} {
		o.add(text)
	}
	assert.Equal(t, map[uint32]bool{7: true}, o.links)
	assert.Equal(t, map[uint32]bool{12: true}, o.programs, "the program of a link is not held by descriptor")
	assert.EqualValues(t, 4196, o.mapBytes())
}

func FuzzObjects(f *testing.F) {
	f.Add("map_id:\t3\nmemlock:\t4096\n")
	f.Fuzz(func(_ *testing.T, text string) {
		o := bpfObjects{links: map[uint32]bool{}, programs: map[uint32]bool{}, maps: map[uint32]uint64{}}
		o.add(text)
	})
}

func TestObjectsOfSelf(t *testing.T) {
	_, err := objectsOf("self")
	require.NoError(t, err)
	_, err = objectsOf("0")
	require.ErrorContains(t, err, "process 0")
}

func TestProcessorOf(t *testing.T) {
	const bare = "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nflags\t\t: fpu hypervisor_not\n\nprocessor\t: 1\nmodel name\t: B\nflags\t\t: hypervisor\n"
	model, virtual := processorOf(bare)
	assert.Equal(t, "A CPU @ 2 GHz", model)
	assert.False(t, virtual)
	_, virtual = processorOf("flags\t\t: fpu hypervisor\n")
	assert.True(t, virtual)
	model, _ = processorOf("")
	assert.NotEmpty(t, model)
}

func TestResidentFrom(t *testing.T) {
	got, err := residentFrom("Name:\tx\nVmRSS:\t   70 kB\n")
	require.NoError(t, err)
	assert.EqualValues(t, 70<<10, got)
	for _, text := range []string{"", "VmRSS:\t70\n", "VmRSS:\tx kB\n", "VmRSS:\t70 MB\n"} {
		_, err := residentFrom(text)
		assert.Error(t, err, text)
	}
}

func TestProcessorTime(t *testing.T) {
	before, err := processorTime(1)
	require.NoError(t, err)
	after, err := processorTime(1)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, after, before)
	_, err = processorTime(1 << 24)
	require.ErrorContains(t, err, "process 16777216")
}

func lines(text string) *bufio.Scanner { return bufio.NewScanner(strings.NewReader(text)) }

const (
	firstTick = `{"type": "printf", "data": "first\n"}` + "\n"
	lastTick  = `{"type": "printf", "data": "last\n"}` + "\n"
	histogram = `{"type": "hist", "data": {"@ns": [{"min": 1024, "max": 2047, "count": 3}, {"min": 2048, "max": 4095, "count": 4}]}}` + "\n"
)

func TestAwaitTicks(t *testing.T) {
	assert.True(t, awaitTicks(lines("\nattaching\n"+firstTick+firstTick+lastTick)))
	assert.True(t, awaitTicks(lines(lastTick+firstTick)))
	assert.False(t, awaitTicks(lines(firstTick+firstTick)), "not every probe is attached")
	assert.False(t, awaitTicks(lines("")))
}

func TestHistogramCount(t *testing.T) {
	got, err := histogramCount(lines(firstTick + lastTick + histogram))
	require.NoError(t, err)
	assert.EqualValues(t, 7, got)
	_, err = histogramCount(lines(firstTick))
	require.ErrorContains(t, err, "no histogram")
	_, err = histogramCount(lines(`{"type": "hist", "data": 3}`))
	require.Error(t, err)
}

func FuzzHistogramCount(f *testing.F) {
	f.Add(firstTick + histogram)
	f.Fuzz(func(_ *testing.T, text string) {
		scanner := lines(text)
		awaitTicks(scanner)
		_, _ = histogramCount(scanner)
	})
}

// TestCheck: a tracer that missed its probes would look cheap.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		seen, completions uint64
		fine              bool
	}{{100, 100, true}, {95, 100, true}, {80, 100, false}, {0, 100, false}, {101, 100, false}} {
		err := (&bpftraceObserver{seen: test.seen}).check(test.completions)
		assert.Equal(t, test.fine, err == nil, test)
	}
}

func TestScript(t *testing.T) {
	script := bpftraceScript("/x/lib.so", functions{
		postSend: provider.Target{Offset: 0x100, ReturnOffset: 0x104},
		pollCQ:   provider.Target{Offset: 0x200, ReturnOffset: 0x204},
	})
	for _, want := range []string{"uprobe:/x/lib.so:0x104 ", "\nuprobe:/x/lib.so:0x204 ", "uretprobe:/x/lib.so:0x204 "} {
		assert.Contains(t, script, want)
	}
}

func TestPlaces(t *testing.T) {
	entry := place{link: 1, offsets: []uint64{0x204}, isOwn: true}
	back := place{link: 2, offsets: []uint64{0x300, 0x204}, isReturn: true, isOwn: true}
	other := place{link: link.ID(3), offsets: []uint64{0x204}}
	poll := provider.Target{Offset: 0x200, ReturnOffset: 0x204}
	assert.True(t, returnsFrom([]place{entry, back}, poll))
	assert.False(t, returnsFrom([]place{entry, other}, poll))
	assert.False(t, returnsFrom([]place{back}, provider.Target{Offset: 0x400, ReturnOffset: 0x404}))
	assert.True(t, foreign([]place{entry, other}))
	assert.False(t, foreign([]place{entry, back}))
	assert.Equal(t, []place{entry, back}, own([]place{entry, other, back}))
	assert.True(t, sameLinks([]place{entry, back}, []place{entry, back}))
	assert.False(t, sameLinks([]place{entry}, []place{entry, back}))
	assert.False(t, sameLinks([]place{entry}, []place{other}))
}

func TestEnded(t *testing.T) {
	assert.True(t, ended(nil))
	assert.True(t, ended(context.Canceled))
	assert.True(t, ended(exec.Command("sh", "-c", "kill -INT $$").Run()))
	assert.False(t, ended(exec.Command("sh", "-c", "exit 3").Run()))
	assert.False(t, ended(errors.New("other")))
}
