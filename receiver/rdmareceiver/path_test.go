package rdmareceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func attributesOfPath(p verbs.Path, withPeer bool) map[string]any {
	to := pcommon.NewMap()
	putPath(to, &p, withPeer)
	return to.AsRaw()
}

func TestPathOfRoCEv2(t *testing.T) {
	assert.Equal(t, map[string]any{
		"network.local.address": "192.0.2.1", "rdma.local.gid": "0000:0000:0000:0000:0000:ffff:c000:0201",
		"network.peer.address": "192.0.2.2", "rdma.peer.gid": "0000:0000:0000:0000:0000:ffff:c000:0202",
		"rdma.qp.path_mtu": int64(4096), "rdma.qp.ack_timeout": 0.067108864, "rdma.qp.min_rnr_timer": 0.00064,
		"rdma.qp.retry_count": int64(7), "rdma.qp.rnr_retry_count": int64(0),
		"rdma.qp.service_level": int64(3), "rdma.qp.traffic_class": int64(106),
	}, attributesOfPath(thePath(), true))
}

// A GID of RoCE v1 or InfiniBand is no IP address.
func TestPathWithoutAddresses(t *testing.T) {
	p := thePath()
	p.GIDType = verbs.GIDTypeRoCEv1
	got := attributesOfPath(p, true)
	assert.NotContains(t, got, attributeLocalAddress)
	assert.NotContains(t, got, attributePeerAddress)
	assert.Contains(t, got, attributePeerGID)
	assert.Empty(t, attributesOfPath(verbs.Path{}, true))
}

// With the switch off nothing tells who the peer is.
func TestPeerAddressesAreLeftOut(t *testing.T) {
	p := thePath()
	p.RemoteLID = 0x2b
	got := attributesOfPath(p, false)
	for _, key := range []string{attributePeerAddress, attributePeerGID, attributePeerLID} {
		assert.NotContains(t, got, key)
	}
	assert.Contains(t, got, attributeLocalAddress)

	r := newRig(t)
	r.cfg.PeerAddresses, r.cfg.SlowLogs = false, true
	r.addTraces(r.traces)
	r.addLogs(r.logs)
	r.start()
	r.engine.completions <- fullCompletion()
	r.engine.stuck <- theStuck()
	r.shutdown()
	out := otlp(t, r)
	assert.Contains(t, out, "192.0.2.1")
	assert.NotContains(t, out, "192.0.2.2")
	assert.NotContains(t, out, "c000:0202")
}
