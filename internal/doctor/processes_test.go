package doctor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/radar"
)

func job(change func(*rdmaProcess)) processes {
	p := rdmaProcess{pid: 4242, name: "python3", devices: []string{"mlx5_0"}, files: []string{"/usr/lib/libibverbs.so.1.14.44.0"}, lockLimit: -1}
	if change != nil {
		change(&p)
	}
	return processes{rdma: []rdmaProcess{p}}
}

func TestProcesses(t *testing.T) {
	maps := func(name string) func(*rdmaProcess) {
		return func(p *rdmaProcess) { p.files = append(p.files, "/opt/"+name) }
	}
	for name, test := range map[string]struct {
		found processes
		want  []expected
	}{
		"none":       {processes{}, nil},
		"plain":      {job(nil), nil},
		"32 bits":    {job(func(p *rdmaProcess) { p.bits32 = true }), []expected{{Note, "python3 (pid 4242) is a 32-bit program"}}},
		"UCX":        {job(maps("libuct_ib_mlx5.so.0.0.0")), []expected{{Note, "UCX_TLS=rc_v,ud_v"}}},
		"older UCX":  {job(maps("libuct_ib.so.0")), []expected{{Note, "rc_mlx5"}}},
		"UCX on rxe": {job(func(p *rdmaProcess) { maps("libuct_ib.so.0")(p); p.devices = []string{"rxe0"} }), nil},
		"IBGDA":      {job(maps("nvshmem_transport_ibgda.so.3")), []expected{{Note, "the GPU posts and polls"}}},
		"DeepEP":     {job(maps("deep_ep_cpp.cpython-312-x86_64-linux-gnu.so")), []expected{{Note, "the GPU posts and polls"}}},
		"EFA":        {job(func(p *rdmaProcess) { maps("libfabric.so.1")(p); maps("libefa.so.1")(p) }), []expected{{Note, "Since libfabric 2.3"}}},
		"libfabric":  {job(maps("libfabric.so.1")), nil},
		"linked in":  {job(func(p *rdmaProcess) { p.files = []string{"/usr/bin/nccl-static"} }), []expected{{Note, "linked into it"}}},
		"not seen":   {job(func(p *rdmaProcess) { p.files = nil }), nil},
		"limit":      {job(func(p *rdmaProcess) { p.lockLimit = 8 << 20 }), []expected{{Warning, "may lock 8192 KiB of memory"}}},
		"root":       {job(func(p *rdmaProcess) { p.lockLimit, p.locksAll = 8<<20, true }), nil},
	} {
		expect(t, name, judgeProcesses(test.found, sight{})[1:], test.want...)
	}
}

// What is closed for want of a capability is told there; else it is told here.
func TestProcessesThatAreClosed(t *testing.T) {
	closed := processes{hidden: 2}
	expect(t, "without the capability", judgeProcesses(closed, sight{}), expected{OK, "0 processes have an RDMA device open (2 processes not looked into)"})
	expect(t, "with it", judgeProcesses(closed, sight{held: holding()}),
		expected{OK, "(2 processes not looked into)"}, expected{Unknown, "2 processes could not be looked into though this process has CAP_SYS_PTRACE | A security module"})
}

// process lays out /proc/PID of a job that has a device open.
func (s *System) process(t *testing.T, cpus string) {
	t.Helper()
	s.link(t, "proc/4242/fd/7", "/dev/infiniband/uverbs0")
	s.link(t, "proc/4242/fd/8", "/dev/null")
	s.link(t, "proc/77/fd/1", "/dev/null")
	s.write(t, "sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n")
	s.write(t, "proc/4242/comm", "evil\x1b[31m\n")
	s.write(t, "proc/4242/maps", "7f00-7f10 r-xp 00000000 08:01 5   /usr/lib/libibverbs.so.1\n7f20-7f30 r--p 00000000 08:01 6   /opt/libuct_ib_mlx5.so.0\n"+
		"7f30-7f40 r-xp 00000000 08:01 6   /opt/libuct_ib_mlx5.so.0\n7f50-7f60 r-xp 00000000 00:00 0\n")
	s.write(t, "proc/4242/exe", "\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	s.write(t, "proc/4242/status", "Name:\tevil\nCapEff:\t0000000000004000\nCpus_allowed_list:\t"+cpus+"\n")
	s.write(t, "proc/4242/limits", "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         8388608              unlimited            bytes\n")
}

func TestProcessesAreRead(t *testing.T) {
	s := machine(t, fabrictest.TwoSockets, noCollector{})
	s.process(t, "0-3,56")
	found, err := readProcesses(s.root)
	require.NoError(t, err)
	require.Len(t, found.rdma, 1)
	assert.Equal(t, rdmaProcess{
		pid: 4242, name: "evil\uFFFD[31m", devices: []string{"mlx5_0"}, files: []string{"/usr/lib/libibverbs.so.1", "/opt/libuct_ib_mlx5.so.0"},
		bits32: true, cpus: []fabric.CPURange{{First: 0, Last: 3}, {First: 56, Last: 56}}, lockLimit: 8 << 20, locksAll: true,
	}, found.rdma[0])
}

func TestNUMA(t *testing.T) {
	for cpus, want := range map[string]Level{"0-55": OK, "0-223": OK, "56-60": Warning, "": OK, "nonsense": OK} {
		s := machine(t, fabrictest.TwoSockets, noCollector{})
		s.process(t, cpus)
		findings := s.checkNUMA(t.Context())
		assert.Equal(t, want, worst(findings), "%s: %v", cpus, findings)
		assert.Equal(t, "this machine has 2 NUMA nodes", findings[0].What)
	}
	s := machine(t, fabrictest.TwoSockets, noCollector{})
	s.process(t, "56-60")
	assert.Contains(t, s.checkNUMA(t.Context())[1].What, "(pid 4242) may run on NUMA node 1 only, and mlx5_0 is on 0")
	expect(t, "one node", judgeNUMA(numaFacts{nodes: 1}), expected{OK, "one NUMA node"})
}

func TestCrossingQueues(t *testing.T) {
	node := 0
	view := radar.View{
		Machine: radar.Machine{Devices: []radar.Device{{Name: "mlx5_0", Place: radar.Place{Node: &node}}}},
		Queues:  radar.QueueTable{Devices: []string{"mlx5_0", "rxe0"}, QP: []uint32{1, 2, 3, 4, 5, 6}, Device: []int{0, 0, 0, 1, 9}, Node: []int{1, 0, -1, 1, 1, 1}},
	}
	expect(t, "crossing", judgeNUMA(numaFacts{nodes: 2, view: &view}), expected{OK, "2 NUMA nodes"}, expected{Note, "1 queue is polled by a thread on another"})
	unknown := []fabric.DeviceDetail{{Device: fabric.Device{Name: "mlx5_0"}, PCI: &fabric.PCIDevice{}}, {Device: fabric.Device{Name: "rxe0"}}}
	expect(t, "unknown", judgeNUMA(numaFacts{nodes: 2, devices: unknown}), expected{OK, ""}, expected{Note, "mlx5_0: the firmware does not say"})
}
