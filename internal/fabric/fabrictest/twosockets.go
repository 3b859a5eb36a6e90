package fabrictest

import (
	"fmt"
	"io"
	"strings"
)

// nearby is a NIC and the GPU that shares a root port with it.
type nearby struct {
	name     string
	nic, gpu int
	socket   int
	lanes    int
}

// twoSockets are the pairs of a DGX H100: the names, sockets and buses of the
// NICs after the table of network modules in its user guide (ibp24s0 is bus
// 0x18), the buses of the GPUs as its nvidia-smi shows them. One link is
// composed to have come up at half its width.
func twoSockets() []nearby {
	return []nearby{
		{"mlx5_0", 0x18, 0x1b, 0, 16},
		{"mlx5_3", 0x40, 0x43, 0, 16},
		{"mlx5_4", 0x4f, 0x52, 0, 16},
		{"mlx5_5", 0x5e, 0x61, 0, 16},
		{"mlx5_6", 0x9a, 0x9d, 1, 16},
		{"mlx5_9", 0xc0, 0xc3, 1, 16},
		{"mlx5_10", 0xce, 0xd1, 1, 16},
		{"mlx5_11", 0xdc, 0xdf, 1, 8},
	}
}

// composeTwoSockets writes a node with two sockets, eight ConnectX-7 on
// InfiniBand NDR and eight GPUs. The PCIe switches are composed: the guide does
// not list them, and there are just so many free buses between NIC and GPU.
//
//	root port ─ switch ┬ NIC
//	                   └ switch ─ GPU
func composeTwoSockets(to io.Writer) {
	cpus := []string{"0-55,112-167", "56-111,168-223"}
	for node, list := range cpus {
		fmt.Fprintf(to, "devices/system/node/node%d/cpulist = %s\n", node, list)
	}
	for i, pair := range twoSockets() {
		c := composer{to: to, node: pair.socket, cpus: cpus[pair.socket], group: i}
		root := fmt.Sprintf("devices/pci0000:%02x", pair.nic-3)
		port := c.bridge(root, pair.nic-3, 1, pair.lanes)
		upper := c.bridge(port, pair.nic-2, 0, pair.lanes)
		c.nic(c.bridge(upper, pair.nic-1, 0, 16), pair)
		lower := c.bridge(c.bridge(upper, pair.nic-1, 2, 16), pair.nic+1, 0, 16)
		c.gpu(c.bridge(lower, pair.nic+2, 0, 16), pair.gpu)
	}
}

// composer writes functions of one socket, all in one IOMMU group.
type composer struct {
	to    io.Writer
	node  int
	cpus  string
	group int
}

func (c composer) line(format string, args ...any) {
	fmt.Fprintf(c.to, format+"\n", args...)
}

// function writes what all functions have and returns the path.
func (c composer) function(above string, bus, slot int, ids [3]int, lanes int) string {
	address := fmt.Sprintf("0000:%02x:%02x.0", bus, slot)
	path := above + "/" + address
	c.line("bus/pci/devices/%s -> ../../../%s", address, path)
	c.line("%s/vendor = 0x%04x", path, ids[0])
	c.line("%s/device = 0x%04x", path, ids[1])
	c.line("%s/class = 0x%06x", path, ids[2])
	c.line("%s/numa_node = %d", path, c.node)
	c.line("%s/local_cpulist = %s", path, c.cpus)
	c.line("%s/current_link_speed = 32.0 GT/s PCIe", path)
	c.line("%s/current_link_width = %d", path, lanes)
	c.line("%s/max_link_speed = 32.0 GT/s PCIe", path)
	c.line("%s/max_link_width = 16", path)
	c.line("%s/iommu_group -> %s/kernel/iommu_groups/%d", path, up(path), c.group)
	c.line("kernel/iommu_groups/%d/type = identity", c.group)
	return path
}

// up is the relative path from a directory to the root.
func up(path string) string {
	return strings.TrimSuffix(strings.Repeat("../", strings.Count(path, "/")+1), "/")
}

// The configuration spaces: a list of capabilities with PCIe at 0x60, whose
// Device Control says relaxed ordering, requests of 512 bytes and packets of
// 256; and for bridges ACS at 0x148 with nothing enabled.
const (
	configEndpoint = "4096 06:1000 34:60 60:1000 68:3029 100:01000100"
	configBridge   = "4096 06:1000 34:60 60:1000 68:3029 100:01008114 148:0d000100 14e:0000"
)

func (c composer) bridge(above string, bus, slot, lanes int) string {
	path := c.function(above, bus, slot, [3]int{0x1000, 0xc030, 0x060400}, lanes)
	c.line("%s/config =x %s", path, configBridge)
	return path
}

func (c composer) gpu(above string, bus int) {
	path := c.function(above, bus, 0, [3]int{0x10de, 0x2330, 0x030200}, 16)
	c.line("%s/config =x %s", path, configEndpoint)
}

func (c composer) nic(above string, pair nearby) {
	path := c.function(above, pair.nic, 0, [3]int{0x15b3, 0x1021, 0x020700}, 16)
	c.line("%s/config =x %s", path, configEndpoint)
	c.line("%s/sriov_numvfs = 0", path)
	for _, kind := range []string{"correctable COR", "nonfatal NONFATAL", "fatal FATAL"} {
		name, total, _ := strings.Cut(kind, " ")
		c.line(`%s/aer_dev_%s = Undefined 0\nTOTAL_ERR_%s 0`, path, name, total)
	}
	device := path + "/infiniband/" + pair.name
	c.line("class/infiniband/%s -> ../../%s", pair.name, device)
	c.line("%s/device -> ../../../0000:%02x:00.0", device, pair.nic)
	c.line("%s/node_guid = a088:c203:0000:00%02x", device, pair.nic)
	c.line("%s/fw_ver = 28.39.3560", device)
	c.line("%s/board_id = MT_0000000838", device)
	c.port(device+"/ports/1", pair.nic)
}

func (c composer) port(port string, bus int) {
	for name, value := range map[string]string{
		"state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": "InfiniBand", "rate": "400 Gb/sec (4X NDR)",
	} {
		c.line("%s/%s = %s", port, name, value)
	}
	c.line("%s/lid = 0x%x", port, bus)
	c.line("%s/gids/0 = fe80:0000:0000:0000:a088:c203:0000:00%02x", port, bus)
	c.line("%s/gid_attrs/types/0 = IB/RoCE v1", port)
	c.line("%s/gids/1 = 0000:0000:0000:0000:0000:0000:0000:0000", port)
	for name, value := range portCounters() {
		c.line("%s/counters/%s = %d", port, name, value)
	}
	for name, value := range hardwareCounters() {
		c.line("%s/hw_counters/%s = %d", port, name, value)
	}
}

// portCounters are all that the kernel has of a port of InfiniBand.
func portCounters() map[string]int {
	return map[string]int{
		"VL15_dropped": 0, "excessive_buffer_overrun_errors": 0, "link_downed": 1, "link_error_recovery": 0,
		"local_link_integrity_errors": 0, "multicast_rcv_packets": 12, "multicast_xmit_packets": 2,
		"port_rcv_constraint_errors": 0, "port_rcv_data": 250_000_000, "port_rcv_errors": 0, "port_rcv_packets": 1_000_000,
		"port_rcv_remote_physical_errors": 0, "port_rcv_switch_relay_errors": 0, "port_xmit_constraint_errors": 0,
		"port_xmit_data": 500_000_000, "port_xmit_discards": 0, "port_xmit_packets": 2_000_000, "port_xmit_wait": 4242,
		"symbol_error": 0, "unicast_rcv_packets": 999_988, "unicast_xmit_packets": 1_999_998,
	}
}

// hardwareCounters are those of mlx5 on InfiniBand.
func hardwareCounters() map[string]int {
	return map[string]int{
		"duplicate_request": 0, "implied_nak_seq_err": 0, "lifespan": 10, "local_ack_timeout_err": 0, "out_of_buffer": 0,
		"out_of_sequence": 0, "packet_seq_err": 0, "req_cqe_error": 0, "req_cqe_flush_error": 0,
		"req_remote_access_errors": 0, "req_remote_invalid_request": 0, "req_rnr_retries_exceeded": 0,
		"req_transport_retries_exceeded": 0, "resp_cqe_error": 0, "resp_cqe_flush_error": 0, "resp_local_length_error": 0,
		"resp_remote_access_errors": 0, "rnr_nak_retry_err": 0, "rx_atomic_requests": 0, "rx_dct_connect": 0,
		"rx_read_requests": 7, "rx_write_requests": 11,
	}
}
