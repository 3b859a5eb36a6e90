package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
)

// kernelResource is a QP, a CQ or a memory region as the rdma tool prints it.
type kernelResource struct {
	Device   string `json:"ifname"`
	PID      int    `json:"pid"`
	QPNumber *int   `json:"lqpn"`
	RemoteQP *int   `json:"rqpn"`
	CQNumber *int   `json:"cqn"`
	// Length is that of a region, in bytes.
	Length *uint64 `json:"mrlen"`
}

// resourcesOf lists the QPs ("qp"), CQs ("cq") or memory regions ("mr") of a
// process.
func resourcesOf(ctx context.Context, kind string, pid int) ([]kernelResource, error) {
	out, err := run(ctx, "rdma", "-j", "resource", "show", kind)
	if err != nil {
		return nil, err
	}
	return parseResources(out, pid)
}

func parseResources(out string, pid int) ([]kernelResource, error) {
	var all, own []kernelResource
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return nil, fmt.Errorf("rdma resource: %w: %s", err, out)
	}
	for _, r := range all {
		if r.PID == pid {
			own = append(own, r)
		}
	}
	return own, nil
}

var gidLine = regexp.MustCompile(`(?m)^\s*GID\[\s*(\d+)\]:\s*([0-9a-fA-F:.]+)`)

// gidOf returns the GID of a device's first port as ibv_devinfo prints it.
func gidOf(ctx context.Context, device string, index int) (netip.Addr, error) {
	out, err := run(ctx, "ibv_devinfo", "-v", "-d", device)
	if err != nil {
		return netip.Addr{}, err
	}
	return parseGID(out, index)
}

func parseGID(out string, index int) (netip.Addr, error) {
	for _, m := range gidLine.FindAllStringSubmatch(out, -1) {
		if m[1] == strconv.Itoa(index) {
			return netip.ParseAddr(m[2])
		}
	}
	return netip.Addr{}, fmt.Errorf("ibv_devinfo prints no GID %d: %s", index, out)
}
