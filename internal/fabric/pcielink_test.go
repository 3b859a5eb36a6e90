package fabric

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

func TestParseLink(t *testing.T) {
	for _, test := range []struct {
		speed, width string
		want         PCIeLink
		gigabytes    float64
	}{
		{"2.5 GT/s PCIe", "1", PCIeLink{2.5, 1}, 0.25},
		{"5.0 GT/s PCIe", "8", PCIeLink{5, 8}, 4},
		{"8 GT/s", "16", PCIeLink{8, 16}, 15.7538},
		{"32.0 GT/s PCIe", "16", PCIeLink{32, 16}, 63.0154},
		{"64.0 GT/s PCIe", "16", PCIeLink{64, 16}, 118},
		{"Unknown", "16", PCIeLink{}, 0},
		{"Unknown speed", "0", PCIeLink{}, 0},
		{"16.0 GT/s PCIe", "0", PCIeLink{}, 0},
		{"16.0 GT/s PCIe", "255", PCIeLink{}, 0},
		{"16.0 GT/s PCIe", "", PCIeLink{}, 0},
		{"", "16", PCIeLink{}, 0},
		{"NaN GT/s PCIe", "16", PCIeLink{}, 0},
		{"-8 GT/s PCIe", "16", PCIeLink{}, 0},
		{"1e9 GT/s PCIe", "16", PCIeLink{}, 0},
	} {
		link := parseLink(test.speed, test.width)
		assert.Equal(t, test.want, link, "%q x%q", test.speed, test.width)
		assert.InDelta(t, test.gigabytes*1e9, link.BytesPerSecond(), 1e5, "%q x%q", test.speed, test.width)
	}
}

// The narrowest link counts, wherever on the way to the CPU it is.
func TestBandwidth(t *testing.T) {
	reader := recorded(t, fabrictest.TwoSockets)
	for address, want := range map[string][2]float64{"0000:18:00.0": {63.015e9, 63.015e9}, "0000:dc:00.0": {31.508e9, 63.015e9}} {
		device, err := reader.PCI(address)
		require.NoError(t, err)
		now, known := device.BandwidthBytesPerSecond()
		require.True(t, known)
		assert.InDelta(t, want[0], now, 1e6, address)
		limit, known := device.LimitBytesPerSecond()
		require.True(t, known)
		assert.InDelta(t, want[1], limit, 1e6, address)
	}
	efa, err := recorded(t, fabrictest.EFA).PCI("0000:00:06.0")
	require.NoError(t, err)
	_, known := efa.BandwidthBytesPerSecond()
	assert.False(t, known, "a flat bus has no link")
}

func TestRefreshLinks(t *testing.T) {
	reader := recorded(t, fabrictest.SingleRoCE)
	before, err := reader.PCI("0000:01:00.0")
	require.NoError(t, err)
	fabrictest.Add(t, reader.root, "devices/pci0000:00/0000:00:01.0/current_link_speed = 2.5 GT/s PCIe")
	after := reader.RefreshLinks(before)
	now, _ := after.BandwidthBytesPerSecond()
	assert.InDelta(t, 4e9, now, 1)
	unchanged, _ := before.BandwidthBytesPerSecond()
	assert.InDelta(t, 31.508e9, unchanged, 1e6, "the device before is left as it was")
}

func TestPCIAddressIsNotTrusted(t *testing.T) {
	reader := recorded(t, fabrictest.Bond)
	for _, address := range []string{"", "..", "0000:3b:00.0/..", "../0000:3b:00.0", "0000:ff:00.0"} {
		_, err := reader.PCI(address)
		assert.Error(t, err, "%q", address)
	}
}
