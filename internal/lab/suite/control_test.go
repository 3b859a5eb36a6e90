package suite

import (
	"net/netip"
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

func TestParseResources(t *testing.T) {
	// What rdma of iproute2 6.1 prints.
	const out = `[{"ifindex":1,"ifname":"rxb","port":1,"lqpn":17,"rqpn":18,"type":"RC","state":"RTS","pid":154,"comm":"rping"},
		{"ifindex":0,"ifname":"rxa","port":1,"lqpn":1,"type":"GSI","state":"RTS","comm":"ib_core"}]`
	own, err := parseResources(out, 154)
	if err != nil || len(own) != 1 || *own[0].QPNumber != 17 || *own[0].RemoteQP != 18 || own[0].Device != "rxb" || own[0].CQNumber != nil {
		t.Errorf("%+v, %v", own, err)
	}
	if _, err := parseResources("no such file", 1); err == nil {
		t.Error("nonsense was read")
	}
}

func TestParseGID(t *testing.T) {
	const out = "hca_id:\trxa\n\t\t\tGID[  0]:\t\tfe80::5054:ff:fe12:3456, RoCE v2\n\t\t\tGID[  1]:\t\t::ffff:10.9.0.1, RoCE v2\n"
	const older = "\t\t\tGID[  1]:\t\t0000:0000:0000:0000:0000:ffff:0a09:0001\n"
	for _, text := range []string{out, older} {
		got, err := parseGID(text, 1)
		if err != nil || got != netip.MustParseAddr("::ffff:10.9.0.1") {
			t.Errorf("%s, %v", got, err)
		}
	}
	if _, err := parseGID(out, 2); err == nil {
		t.Error("a GID that is not there")
	}
}

func TestCheckNamesSeesEachDifference(t *testing.T) {
	number := func(n int) *int { return &n }
	local := end{
		device: "rxa", address: "10.9.0.1", gid: netip.MustParseAddr("::ffff:10.9.0.1"),
		qps: []kernelResource{{Device: "rxa", QPNumber: number(17), RemoteQP: number(18)}},
		cqs: []kernelResource{{Device: "rxa", CQNumber: number(4)}, {Device: "rxa", CQNumber: number(0)}},
	}
	peer := end{address: "10.9.0.2", gid: netip.MustParseAddr("::ffff:10.9.0.2")}
	good := func() otlp.Span {
		return otlp.Span{Attributes: map[string]string{
			"rdma.qp.number": "17", "rdma.qp.remote_number": "18", "rdma.cq.number": "0", "rdma.qp.type": "rc",
			"rdma.local.gid": "0000:0000:0000:0000:0000:ffff:0a09:0001", "rdma.peer.gid": "0000:0000:0000:0000:0000:ffff:0a09:0002",
			"network.local.address": "10.9.0.1", "network.peer.address": "10.9.0.2",
			"rdma.device.name": "rxa", "rdma.device.port": "1",
		}}
	}
	if err := local.checkNames(good(), peer); err != nil {
		t.Fatal(err)
	}
	for key := range good().Attributes {
		for _, wrong := range []string{"", "99"} {
			s := good()
			s.Attributes[key] = wrong
			if err := local.checkNames(s, peer); err == nil {
				t.Errorf("%s = %q passes", key, wrong)
			}
		}
	}
}
