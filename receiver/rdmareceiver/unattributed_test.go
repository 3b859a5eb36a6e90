package rdmareceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// portSent is a sample of ports that sent so much since a moment.
func portSent(since time.Time, bytes ...uint64) *fabric.Sample {
	counter := &fabric.Counter{Metric: fabric.MetricPortIO, Direction: fabric.DirectionTransmit}
	sample := &fabric.Sample{At: since.Add(time.Minute)}
	for port, n := range bytes {
		sample.Readings = append(sample.Readings, fabric.Reading{Device: "mlx5_0", Port: port + 1, Counter: counter, Count: n, Since: since})
	}
	return sample
}

func TestUnattributed(t *testing.T) {
	for _, test := range []struct {
		name         string
		sent, traced []uint64
		want         int64
	}{
		{"all explained", []uint64{0, 100, 200, 300, 400}, []uint64{0, 100, 200, 300, 400}, 0},
		{"the port is read late", []uint64{0, 0, 200, 200, 400, 400}, []uint64{0, 100, 200, 300, 400, 500}, 0},
		{"the port is read early", []uint64{0, 200, 200, 400, 400, 600}, []uint64{0, 100, 200, 300, 400, 500}, 0},
		{"half is not traced", []uint64{0, 200, 400, 600, 800}, []uint64{0, 100, 200, 300, 400}, 200},
		{"nothing is traced", []uint64{1000, 1100, 1100, 1100}, []uint64{5, 5, 5, 5}, 100},
		{"not settled yet", []uint64{0, 100}, []uint64{0, 0}, 0},
		{"traced within the NIC", []uint64{0, 0, 0, 0, 0}, []uint64{0, 1000, 2000, 3000, 4000}, 0},
		{"within the NIC, then not traced", []uint64{0, 0, 0, 0, 5000, 5000, 5000}, []uint64{0, 1000, 2000, 3000, 3000, 3000, 3000}, 4000},
	} {
		t.Run(test.name, func(t *testing.T) {
			var u unattributed
			since := time.Unix(1000, 0)
			last := int64(0)
			for i := range test.sent {
				got := u.update(portSent(since, test.sent[i]), map[string]uint64{"mlx5_0": test.traced[i]})
				assert.Len(t, got, 1)
				assert.GreaterOrEqual(t, got[0].bytes, last, "it does not go down")
				last = got[0].bytes
			}
			assert.Equal(t, test.want, last)
		})
	}
}

func TestUnattributedOfAllPorts(t *testing.T) {
	var u unattributed
	for _, sent := range []uint64{0, 10, 10, 10} {
		u.update(portSent(time.Unix(1000, 0), sent, 2*sent), nil)
	}
	assert.EqualValues(t, 30, u.devices["mlx5_0"].settled)
}

// A device that is plugged in again begins anew, one without a counter of bytes
// has nothing.
func TestUnattributedBeginsAnew(t *testing.T) {
	var u unattributed
	for _, sent := range []uint64{0, 10, 10, 10} {
		u.update(portSent(time.Unix(1000, 0), sent), nil)
	}
	again := u.update(portSent(time.Unix(2000, 0), 0), nil)
	assert.Zero(t, again[0].bytes)
	assert.Equal(t, time.Unix(2060, 0), again[0].started)
	assert.Empty(t, u.update(&fabric.Sample{}, nil))
	assert.Empty(t, u.devices)
}
