package tracer

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// namesWith are the names of so many devices from an index on.
func namesWith(from, n int, prefix string) []string {
	names := make([]string, 2*sysfsDevices)
	for i := range n {
		names[from+i] = fmt.Sprint(prefix, i)
	}
	return names
}

// Of a device that is left out no queue tells that it is used: it keeps its index for
// as long as others find one.
func TestDeviceIsKept(t *testing.T) {
	takes := func(name string) bool { return name != "out0" }
	for name, test := range map[string]struct {
		names []string
		shown map[string]bool
		used  map[uint32]bool
		of    string
		want  bool
	}{
		"in sysfs":                               {namesWith(0, 1, "mlx"), map[string]bool{"mlx0": true}, nil, "mlx0", true},
		"with a queue":                           {namesWith(70, 1, "mlx"), nil, map[uint32]bool{70: true}, "mlx0", true},
		"unused":                                 {namesWith(70, 1, "mlx"), nil, map[uint32]bool{71: true}, "mlx0", false},
		"left out":                               {namesWith(70, 1, "out"), nil, nil, "out0", true},
		"left out, and a fourth is free":         {namesWith(sysfsDevices, 48, "out"), nil, nil, "out0", true},
		"left out, and few are free":             {namesWith(sysfsDevices, 49, "out"), nil, nil, "out0", false},
		"left out, and few of sysfs are free":    {namesWith(0, 49, "out"), nil, nil, "out0", false},
		"left out, in sysfs, and few are free":   {namesWith(0, 49, "out"), map[string]bool{"out0": true}, nil, "out0", true},
		"left out, and others have none of ours": {append(namesWith(0, 49, "mlx")[:sysfsDevices], namesWith(sysfsDevices, 1, "out")[sysfsDevices:]...), nil, nil, "out0", true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &devices{takes: takes, shown: test.shown}
			assert.Equal(t, test.want, d.keep(test.names, test.used)(test.of))
		})
	}
}

// threeRetired are devices whose indexes are retired: the last for sysfs, and the
// first two of the others.
func threeRetired() (d *devices, names []string, free []uint32) {
	known, names := namesWith(sysfsDevices-1, 3, "vf"), namesWith(sysfsDevices-1, 3, "vf")
	d = &devices{rest: newDeviceRest(unusedFor, retiredFor)}
	d.names.Store(&known)
	free = []uint32{sysfsDevices - 1, sysfsDevices, sysfsDevices + 1}
	for _, i := range free {
		d.rest.retired[i] = 1
	}
	return d, names, free
}

// A program may give an index to another device as soon as it is handed out: its old
// name is nobody's by then.
func TestNamesAreGoneBeforeAnIndexIsHandedOut(t *testing.T) {
	d, names, free := threeRetired()
	var handed []uint32
	err := d.handOut(names, free, func(i uint32) error {
		assert.Empty(t, d.name(sysfsDevices))
		assert.Empty(t, d.name(sysfsDevices+1))
		handed = append(handed, i)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, free[1:], handed, "that of sysfs is not handed out")
	assert.Empty(t, d.rest.retired)
}

func TestDeviceIndexThatIsNotHandedOutIsTheNextTime(t *testing.T) {
	d, names, free := threeRetired()
	full := errors.New("full")
	require.ErrorIs(t, d.handOut(names, free, func(uint32) error { return full }), full)
	assert.Empty(t, d.name(sysfsDevices))
	assert.Equal(t, free[1:], d.rest.rested(100, nil))
}

// What cannot be found whole is not dropped in part, and is not told to be gone.
func TestDroppingWhatIsCounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: BPF maps cannot be made without it")
	}
	newMap := func(key, value uintptr) *ebpf.Map {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: uint32(key), ValueSize: uint32(value), MaxEntries: 16})
		require.NoError(t, err)
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	side := &kernelSide{}
	side.maps.Aggregates = newMap(unsafe.Sizeof(bpf.TrackerSeriesKey{}), unsafe.Sizeof(bpf.TrackerSeries{}))
	side.maps.Rejected = newMap(unsafe.Sizeof(bpf.TrackerRejectedKey{}), 8)
	tr := &Tracer{side: side, books: newLedger()}
	for i := range uint16(5) {
		require.NoError(t, side.maps.Aggregates.Put(&bpf.TrackerSeriesKey{Device: i}, &bpf.TrackerSeries{}))
	}
	require.NoError(t, side.maps.Rejected.Put(&bpf.TrackerRejectedKey{Device: 5}, uint64(1)))
	tr.books.emptied[emptiedKey{device: 6}] = 1

	gone, err := tr.dropDevices([]string{"a", "b", "b", "c", "d", "e", "f"}, []string{"b", "e", "f"})
	require.NoError(t, err)
	assert.Equal(t, []string{"b", "e", "f"}, gone)
	counted, err := tr.countedIndexes()
	require.NoError(t, err)
	assert.Equal(t, map[uint32]bool{0: true, 3: true, 4: true}, counted)

	rejected := side.maps.Rejected
	side.maps.Rejected = newMap(unsafe.Sizeof(bpf.TrackerRejectedKey{}), 8)
	require.NoError(t, side.maps.Rejected.Close())
	gone, err = tr.dropDevices([]string{"a"}, []string{"a"})
	require.ErrorContains(t, err, "[a]")
	assert.Empty(t, gone)
	side.maps.Rejected = rejected
	counted, err = tr.countedIndexes()
	require.NoError(t, err)
	assert.True(t, counted[0])
}
