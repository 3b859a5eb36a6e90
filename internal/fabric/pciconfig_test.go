package fabric

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// config is a configuration space with 16-bit registers at offsets.
func config(size int, registers map[int]uint16) []byte {
	space := make([]byte, size)
	for at, value := range registers {
		binary.LittleEndian.PutUint16(space[at:], value)
	}
	return space
}

func TestParseConfig(t *testing.T) {
	base := map[int]uint16{0x06: 0x10, 0x34: 0x40, 0x40: 0x6005, 0x60: 0x10, 0x68: 0x5030}
	with := func(more map[int]uint16) map[int]uint16 {
		all := map[int]uint16{}
		for _, m := range []map[int]uint16{base, more} {
			for at, value := range m {
				all[at] = value
			}
		}
		return all
	}
	control := &PCIeControl{RelaxedOrdering: true, MaxReadRequest: 4096, MaxPayload: 256}
	for _, test := range []struct {
		name    string
		size    int
		config  map[int]uint16
		control *PCIeControl
		acs     *ACS
	}{
		{"without CAP_SYS_ADMIN", 64, map[int]uint16{0x06: 0x10, 0x34: 0x60}, nil, nil},
		{"empty", 0, nil, nil, nil},
		{"no list", 4096, with(map[int]uint16{0x06: 0}), nil, nil},
		{"no PCIe", 4096, with(map[int]uint16{0x40: 0x0005}), nil, nil},
		{"list in the header", 4096, with(map[int]uint16{0x34: 0x04}), nil, nil},
		{"a ring", 4096, with(map[int]uint16{0x40: 0x4005}), nil, nil},
		{"no extended space", 256, base, control, nil},
		{"no extended capability", 4096, base, control, &ACS{}},
		{"switched off", 4096, with(map[int]uint16{0x100: 0xffff, 0x102: 0xffff}), control, nil},
		{"reserved sizes", 4096, with(map[int]uint16{0x68: 0x70e0}), &PCIeControl{}, &ACS{}},
		{
			"second, all enabled", 4096, with(map[int]uint16{0x100: 0x01, 0x102: 0x1481, 0x148: 0x0d, 0x14a: 0x0001, 0x14e: 0x7f}),
			control, &ACS{true, true, true, true, true, true, true, true},
		},
		{"only redirect", 4096, with(map[int]uint16{0x100: 0x0d, 0x102: 0x0001, 0x106: 0x04}), control, &ACS{Supported: true, RequestRedirect: true}},
		{"an extended ring", 4096, with(map[int]uint16{0x100: 0x01, 0x102: 0x1001}), control, nil},
		{"cut off", 0x106, with(map[int]uint16{0x100: 0x0d, 0x102: 0x0001}), control, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			control, acs := parseConfig(bytes.NewReader(config(max(test.size, 0x200), test.config)[:test.size]))
			assert.Equal(t, test.control, control)
			assert.Equal(t, test.acs, acs)
		})
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte{})
	f.Add(config(64, map[int]uint16{0x06: 0x10, 0x34: 0x60}))
	f.Add(config(4096, map[int]uint16{0x06: 0x10, 0x34: 0x60, 0x60: 0x10, 0x68: 0x5930, 0x100: 0x0d, 0x106: 0x1d}))
	f.Add(bytes.Repeat([]byte{0xff}, 4096))
	f.Fuzz(func(t *testing.T, space []byte) {
		control, acs := parseConfig(bytes.NewReader(space))
		if control == nil {
			require.Nil(t, acs)
			return
		}
		require.Greater(t, len(space), 64)
		require.LessOrEqual(t, control.MaxReadRequest, 4096)
		if acs != nil {
			require.Greater(t, len(space), 0x100)
			require.True(t, acs.Supported || !acs.Redirects())
		}
	})
}

func TestACSRedirects(t *testing.T) {
	off, on := &ACS{Supported: true}, &ACS{Supported: true, CompletionRedirect: true}
	for _, test := range []struct {
		name             string
		bridges          []*ACS
		redirects, known bool
	}{
		{"no bridge", nil, false, false},
		{"none", []*ACS{off, {}}, false, true},
		{"one", []*ACS{off, on}, true, true},
		{"one not readable", []*ACS{off, nil}, false, false},
		{"one, another not readable", []*ACS{nil, on}, true, true},
	} {
		device := PCIDevice{}
		for _, acs := range test.bridges {
			device.Bridges = append(device.Bridges, PCIFunction{ACS: acs})
		}
		redirects, known := device.ACSRedirects()
		assert.Equal(t, test.redirects, redirects, test.name)
		assert.Equal(t, test.known, known, test.name)
	}
}
