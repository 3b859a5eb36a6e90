package rdmareceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	kindAttribute   = "rdma.memory.kind"
	deviceAttribute = "rdma.device.name"
)

// registered is what a process has registered so far, and what of it lives.
func registered(id verbs.ProcessID, count, live uint64) verbs.Registrations {
	return verbs.Registrations{
		Process: id, Device: "mlx5_0", Kind: verbs.MemoryHost, Count: count, Bytes: count << 12,
		Time: time.Duration(count) * time.Second, DeregistrationTime: time.Duration(count-live) * time.Second,
		Regions: live, RegionBytes: live << 12,
	}
}

// Counters of two processes of a job add up and go on after one of them; what
// lives is what lives now.
func TestRegistrationsOfAJob(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	for _, step := range []struct {
		all            []verbs.Registrations
		exited         []verbs.ProcessID
		count, regions int64
		seconds        float64
	}{
		{[]verbs.Registrations{registered(trainer, 4, 4)}, nil, 4, 4, 0},
		{[]verbs.Registrations{registered(trainer, 5, 2), registered(peer, 3, 3)}, nil, 8, 5, 3},
		{[]verbs.Registrations{registered(trainer, 5, 5), registered(peer, 3, 1)}, []verbs.ProcessID{trainer}, 8, 1, 5},
		// The probes were loaded anew.
		{[]verbs.Registrations{registered(peer, 1, 1)}, nil, 9, 1, 5},
	} {
		got := b.collect(verbs.Snapshot{Registrations: step.all, Exited: step.exited})
		of := []string{deviceAttribute, "mlx5_0", kindAttribute, "host"}
		assert.Equal(t, step.count, value(t, got, "rdma.mr.registrations", of...).IntValue())
		assert.Equal(t, step.count<<12, value(t, got, "rdma.mr.registration.size", of...).IntValue())
		assert.InDelta(t, float64(step.count), value(t, got, "rdma.mr.registration.time", of...).DoubleValue(), 1e-9)
		assert.Equal(t, step.regions, value(t, got, "rdma.mr.regions", of...).IntValue())
		assert.Equal(t, step.regions<<12, value(t, got, "rdma.mr.registered", of...).IntValue())
		if step.seconds > 0 {
			assert.InDelta(t, step.seconds, value(t, got, "rdma.mr.deregistration.time", of...).DoubleValue(), 1e-9)
		}
	}
}

// A process that only fails has an error, and no memory.
func TestFailedRegistrations(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	got := b.collect(verbs.Snapshot{Registrations: []verbs.Registrations{
		{Process: trainer, Device: "mlx5_0", Kind: verbs.MemoryDMABuf, Errno: 22, Count: 3, Time: time.Second},
	}})
	failed := value(t, got, "rdma.mr.registrations", deviceAttribute, "mlx5_0", kindAttribute, "dmabuf", "error.type", "EINVAL")
	assert.EqualValues(t, 3, failed.IntValue())
	assert.InDelta(t, 1, value(t, got, "rdma.mr.registration.time", kindAttribute, "dmabuf").DoubleValue(), 1e-9)
	for _, metric := range []string{"rdma.mr.regions", "rdma.mr.registered", "rdma.mr.registration.size"} {
		assert.Empty(t, values(got, metric), metric)
	}
}
