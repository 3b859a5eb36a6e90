package fabric

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

func TestGIDs(t *testing.T) {
	reader := recorded(t, fabrictest.SoftRoCE)
	gids, err := reader.GIDs("rxa", 1)
	require.NoError(t, err)
	require.Len(t, gids, 2)
	assert.Equal(t, GID{
		Index: 1, GID: netip.MustParseAddr("::ffff:10.9.0.1"), Type: GIDTypeRoCEv2,
		Address: netip.MustParseAddr("10.9.0.1"), NetDev: "va",
	}, gids[1])
	for _, name := range []string{"", "..", "../infiniband/rxa", "rxz"} {
		_, err := reader.GIDs(name, 1)
		assert.Error(t, err, "%q", name)
	}
	_, err = reader.GIDs("rxa", 2)
	assert.ErrorContains(t, err, "port 2")
}

func FuzzParseGID(f *testing.F) {
	for _, seed := range []string{
		"fe80:0000:0000:0000:786f:64ff:fea9:47c4", "0000:0000:0000:0000:0000:ffff:0a09:0001",
		"0000:0000:0000:0000:0000:0000:0000:0000", "fe80::", "10.9.0.1", "fe80::1%eth0", "", "::ffff:1.2.3.4",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		gid, err := parseGID(text)
		if err != nil {
			require.False(t, gid.IsValid())
			require.Less(t, len(err.Error()), 512)
			return
		}
		require.True(t, gid.Is6() && !gid.IsUnspecified())
		require.False(t, strings.Contains(gid.String(), "%"))
	})
}
