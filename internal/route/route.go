// Package route tells who talks to whom over what: it bundles the queues that
// lead from a port of this host to one peer. Pure functions.
package route

import (
	"cmp"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// MostPerDevice bounds the routes of one device in a table.
const MostPerDevice = 64

// Ends are the two ends of a route. Of an end that is not known all members are
// zero: on kernels that do not tell, and of UD queues, each of whose requests
// has its own peer.
type Ends struct {
	Local, Remote verbs.GID
	// GIDType is that of both.
	GIDType verbs.GIDType
	// RemoteLID is the peer's local identifier, 0 where there is none.
	RemoteLID uint16
}

// Path has the ends in the form that knows addresses.
func (e Ends) Path() verbs.Path {
	return verbs.Path{LocalGID: e.Local, RemoteGID: e.Remote, GIDType: e.GIDType, RemoteLID: e.RemoteLID}
}

// Route is what went over the queues from one port to one peer between two
// snapshots, for one owner: a rank of a job, or whatever the caller tells
// processes apart by.
type Route[Owner comparable] struct {
	Owner  Owner
	Device string
	// Port is 0 where it is not known.
	Port uint8
	Ends Ends
	// Queues is how many there are now, 0 when all have ended.
	Queues int
	// Bytes is the payload of the sends, writes, reads and atomics of this side
	// that completed. What the peer sends is on its own route.
	Bytes uint64
	// Timed counts completions of which the duration is known, Slow those of them
	// over the threshold.
	Timed, Slow uint64
	// P50 and P99 are durations that half and 99 of 100 of the timed completions
	// did not exceed: upper edges of buckets, at most √2 too high. 0 when Timed
	// is 0.
	P50, P99 time.Duration
}

// key is what queues of one route have in common.
type key[Owner comparable] struct {
	owner  Owner
	device string
	port   uint8
	ends   Ends
}

// sums is what the queues of one route did.
type sums struct {
	queues      int
	bytes, slow uint64
	durations   [verbs.QueueBuckets]uint64
}

// Table lists the routes of the queues there are now and of those that ended since
// before, the queues of an earlier snapshot, and what went over them since. Of each
// device it has the MostPerDevice routes with the most bytes. Devices come in the
// order of their names, the routes of one with the hottest first.
func Table[Owner comparable](before, now, ended []verbs.QueueInfo, owner func(verbs.ProcessID) Owner) []Route[Owner] {
	earlier := make(map[verbs.QueueID]*verbs.Traffic, len(before))
	for i := range before {
		earlier[before[i].ID] = &before[i].Traffic
	}
	routes := map[key[Owner]]*sums{}
	add := func(q *verbs.QueueInfo) *sums {
		k := key[Owner]{owner: owner(q.ID.Process), device: q.Device, port: q.Port, ends: endsOf(&q.Path)}
		if routes[k] == nil {
			routes[k] = &sums{}
		}
		routes[k].add(&q.Traffic, earlier[q.ID])
		return routes[k]
	}
	for i := range now {
		add(&now[i]).queues++
	}
	for i := range ended {
		add(&ended[i])
	}
	return hottest(routes)
}

func endsOf(p *verbs.Path) Ends {
	return Ends{Local: p.LocalGID, Remote: p.RemoteGID, GIDType: p.GIDType, RemoteLID: p.RemoteLID}
}

// add takes what a queue did since it was seen before, all of it when it was not.
func (s *sums) add(now, before *verbs.Traffic) {
	if before == nil || before.Generation != now.Generation {
		before = &verbs.Traffic{}
	}
	s.bytes += now.Bytes - before.Bytes
	s.slow += now.Slow - before.Slow
	for i := range s.durations {
		// Counts wrap, and so does their difference.
		s.durations[i] += uint64(now.Durations[i] - before.Durations[i])
	}
}

func hottest[Owner comparable](routes map[key[Owner]]*sums) []Route[Owner] {
	all := make([]Route[Owner], 0, len(routes))
	for k, s := range routes {
		all = append(all, routeOf(k, s))
	}
	slices.SortFunc(all, compare[Owner])
	kept := all[:0]
	ofDevice := 0
	for _, r := range all {
		if len(kept) > 0 && kept[len(kept)-1].Device != r.Device {
			ofDevice = 0
		}
		if ofDevice++; ofDevice <= MostPerDevice {
			kept = append(kept, r)
		}
	}
	return kept
}

func routeOf[Owner comparable](k key[Owner], s *sums) Route[Owner] {
	r := Route[Owner]{
		Owner: k.owner, Device: k.device, Port: k.port, Ends: k.ends,
		Queues: s.queues, Bytes: s.bytes, Slow: s.slow,
	}
	for _, n := range s.durations {
		r.Timed += n
	}
	r.P50, r.P99 = quantile(&s.durations, r.Timed, 50), quantile(&s.durations, r.Timed, 99)
	return r
}

// quantile is the upper edge of the bucket in which that many percent of the
// durations are reached.
func quantile(durations *[verbs.QueueBuckets]uint64, timed uint64, percent uint64) time.Duration {
	if timed == 0 {
		return 0
	}
	wanted := (timed*percent + 99) / 100
	reached := uint64(0)
	for i, n := range durations {
		if reached += n; reached >= wanted {
			return verbs.QueueBucketEdge(i)
		}
	}
	return verbs.QueueBucketEdge(len(durations) - 1)
}

// compare orders by device, then by heat. Equally hot routes of one device have
// an order that does not change, but for those that differ in their owner alone.
func compare[Owner comparable](a, b Route[Owner]) int {
	return cmp.Or(
		cmp.Compare(a.Device, b.Device),
		cmp.Compare(b.Bytes, a.Bytes),
		cmp.Compare(b.Queues, a.Queues),
		cmp.Compare(a.Port, b.Port),
		slices.Compare(a.Ends.Remote[:], b.Ends.Remote[:]),
		slices.Compare(a.Ends.Local[:], b.Ends.Local[:]),
		cmp.Compare(a.Ends.RemoteLID, b.Ends.RemoteLID),
	)
}
