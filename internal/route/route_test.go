package route

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func gid(address string) verbs.GID { return verbs.GID(netip.MustParseAddr(address).As16()) }

// queueTo is a queue of a process to a peer; "" is one that is not known.
func queueTo(tgid, number uint32, peer string, traffic verbs.Traffic) verbs.QueueInfo {
	q := verbs.QueueInfo{
		ID:     verbs.QueueID{Process: verbs.ProcessID{TGID: tgid}, QPNumber: number},
		Device: "mlx5_0", Port: 1, Traffic: traffic,
	}
	if peer != "" {
		q.Path = verbs.Path{LocalGID: gid("::ffff:10.0.0.1"), RemoteGID: gid(peer), GIDType: verbs.GIDTypeRoCEv2}
	}
	return q
}

// durations has so many in each of the named buckets.
func durations(counts map[int]uint32) (d [verbs.QueueBuckets]uint32) {
	for i, n := range counts {
		d[i] = n
	}
	return d
}

func rankOf(id verbs.ProcessID) int { return int(id.TGID) - 100 }

// line is a route as the tests compare it.
func line(r Route[int]) string {
	p := r.Ends.Path()
	return fmt.Sprintf("%s/%d rank %d to %s: %d queues %d bytes %d timed %d slow %s %s",
		r.Device, r.Port, r.Owner, p.RemoteAddress(), r.Queues, r.Bytes, r.Timed, r.Slow, r.P50, r.P99)
}

func TestTable(t *testing.T) {
	// Buckets of about 1 µs and 0.5 s.
	const short, long = 6, 43
	micro, half := verbs.QueueBucketEdge(short), verbs.QueueBucketEdge(long)
	wrapped := durations(map[int]uint32{short: 1<<32 - 2})
	tests := []struct {
		name               string
		before, now, ended []verbs.QueueInfo
		want               []string
	}{
		{name: "no queue"},
		{
			name: "queues to one peer are one route, of each rank, the hottest first",
			now: []verbs.QueueInfo{
				queueTo(100, 1, "::ffff:10.0.0.2", verbs.Traffic{Bytes: 10, Durations: durations(map[int]uint32{short: 90})}),
				queueTo(100, 2, "::ffff:10.0.0.2", verbs.Traffic{Bytes: 20, Slow: 10, Durations: durations(map[int]uint32{long: 10})}),
				queueTo(100, 3, "::ffff:10.0.0.3", verbs.Traffic{Bytes: 5}),
				queueTo(101, 1, "::ffff:10.0.0.2", verbs.Traffic{Bytes: 40, Durations: durations(map[int]uint32{short: 100})}),
			},
			want: []string{
				fmt.Sprintf("mlx5_0/1 rank 1 to 10.0.0.2: 1 queues 40 bytes 100 timed 0 slow %s %s", micro, micro),
				fmt.Sprintf("mlx5_0/1 rank 0 to 10.0.0.2: 2 queues 30 bytes 100 timed 10 slow %s %s", micro, half),
				"mlx5_0/1 rank 0 to 10.0.0.3: 1 queues 5 bytes 0 timed 0 slow 0s 0s",
			},
		},
		{
			name: "only what was new counts, also over the end of a counter",
			before: []verbs.QueueInfo{
				queueTo(100, 1, "", verbs.Traffic{Generation: 1, Bytes: 100, Slow: 3, Durations: wrapped}),
				queueTo(100, 9, "", verbs.Traffic{Bytes: 1000}),
			},
			now: []verbs.QueueInfo{
				queueTo(100, 1, "", verbs.Traffic{Generation: 1, Bytes: 107, Slow: 4, Durations: durations(map[int]uint32{short: 1})}),
			},
			want: []string{fmt.Sprintf("mlx5_0/1 rank 0 to invalid IP: 1 queues 7 bytes 3 timed 1 slow %s %s", micro, micro)},
		},
		{
			name:   "queues that ended count, also where none is left",
			before: []verbs.QueueInfo{queueTo(100, 1, "::ffff:10.0.0.2", verbs.Traffic{Bytes: 100})},
			now:    []verbs.QueueInfo{queueTo(100, 2, "::ffff:10.0.0.2", verbs.Traffic{Bytes: 5})},
			ended: []verbs.QueueInfo{
				queueTo(100, 1, "::ffff:10.0.0.2", verbs.Traffic{Bytes: 103}),
				queueTo(100, 3, "::ffff:10.0.0.3", verbs.Traffic{Bytes: 4}),
			},
			want: []string{
				"mlx5_0/1 rank 0 to 10.0.0.2: 1 queues 8 bytes 0 timed 0 slow 0s 0s",
				"mlx5_0/1 rank 0 to 10.0.0.3: 0 queues 4 bytes 0 timed 0 slow 0s 0s",
			},
		},
		{
			name:   "a number that was used anew is another queue",
			before: []verbs.QueueInfo{queueTo(100, 1, "", verbs.Traffic{Generation: 1, Bytes: 100, Slow: 3})},
			now:    []verbs.QueueInfo{queueTo(100, 1, "", verbs.Traffic{Generation: 2, Bytes: 7})},
			want:   []string{"mlx5_0/1 rank 0 to invalid IP: 1 queues 7 bytes 0 timed 0 slow 0s 0s"},
		},
	}
	for _, tt := range tests {
		var got []string
		for _, r := range Table(tt.before, tt.now, tt.ended, rankOf) {
			got = append(got, line(r))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

// What tells routes apart, one by one.
func TestTableTellsApart(t *testing.T) {
	base := queueTo(100, 1, "::ffff:10.0.0.2", verbs.Traffic{})
	for name, change := range map[string]func(*verbs.QueueInfo){
		"device":     func(q *verbs.QueueInfo) { q.Device = "mlx5_1" },
		"port":       func(q *verbs.QueueInfo) { q.Port = 2 },
		"process":    func(q *verbs.QueueInfo) { q.ID.Process.TGID = 101 },
		"local GID":  func(q *verbs.QueueInfo) { q.Path.LocalGID = gid("::ffff:10.0.0.9") },
		"remote GID": func(q *verbs.QueueInfo) { q.Path.RemoteGID = gid("::ffff:10.0.0.9") },
		"GID type":   func(q *verbs.QueueInfo) { q.Path.GIDType = verbs.GIDTypeRoCEv1 },
		"LID":        func(q *verbs.QueueInfo) { q.Path.RemoteLID = 7 },
	} {
		other := base
		other.ID.QPNumber = 2
		if got := Table(nil, []verbs.QueueInfo{base, other}, nil, rankOf); len(got) != 1 || got[0].Queues != 2 {
			t.Fatalf("two queues of one route: %+v", got)
		}
		if change(&other); len(Table(nil, []verbs.QueueInfo{base, other}, nil, rankOf)) != 2 {
			t.Errorf("%s: one route", name)
		}
	}
}

// Of thousands of routes the hottest of each device stay, and the others take
// nothing from them.
func TestTableIsBounded(t *testing.T) {
	var queues []verbs.QueueInfo
	for i := range uint32(4096) {
		q := queueTo(100, i, "2001:db8::1", verbs.Traffic{Bytes: uint64(i)})
		q.Path.RemoteGID[15], q.Path.RemoteGID[14] = byte(i), byte(i>>8)
		q.Device = fmt.Sprintf("mlx5_%d", i%3)
		queues = append(queues, q)
	}
	got := Table(nil, queues, nil, rankOf)
	if len(got) != 3*MostPerDevice {
		t.Fatalf("%d routes", len(got))
	}
	for i, r := range got {
		device, place := i/MostPerDevice, i%MostPerDevice
		hottest := uint64(4095 - (4095-device)%3)
		if want := hottest - 3*uint64(place); r.Device != fmt.Sprintf("mlx5_%d", device) || r.Bytes != want {
			t.Fatalf("route %d: %d bytes on %s, want %d", i, r.Bytes, r.Device, want)
		}
	}
}

// A quantile is never below the durations that it speaks of, and never more than
// √2 above: the bucket of a duration begins no lower than that.
func TestQuantileOfOneDuration(t *testing.T) {
	for i := 1; i < verbs.QueueBuckets; i++ {
		var d [verbs.QueueBuckets]uint64
		d[i] = 3
		longest, shortest := verbs.QueueBucketEdge(i), verbs.QueueBucketEdge(i-1)+1
		if got := quantile(&d, 3, 50); got < longest || float64(got) > 1.4143*float64(shortest) {
			t.Errorf("from %s to %s reported as %s", shortest, longest, got)
		}
	}
}

// 99 of 100 are reached with the 99th, half of three with the second.
func TestQuantileCounts(t *testing.T) {
	var d [verbs.QueueBuckets]uint64
	for n, want := range map[uint64]int{99: 10, 98: 20} {
		d[10], d[20] = n, 100-n
		if got := quantile(&d, 100, 99); got != verbs.QueueBucketEdge(want) {
			t.Errorf("%d short ones of 100: p99 %s", n, got)
		}
	}
	d[10], d[20] = 1, 2
	if got := quantile(&d, 3, 50); got != verbs.QueueBucketEdge(20) {
		t.Errorf("p50 %s", got)
	}
}
