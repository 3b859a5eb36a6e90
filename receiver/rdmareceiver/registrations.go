package rdmareceiver

import (
	"github.com/rdmaradar/rdmaradar/internal/verbs"
	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// registrationsKey is what the tracer counts registrations of memory under.
type registrationsKey struct {
	process verbs.ProcessID
	device  string
	kind    verbs.MemoryKind
	errno   uint32
}

// addRegistrations takes what processes registered since the last snapshot, and
// what of it lives.
func (a *aggregator) addRegistrations(snap *verbs.Snapshot) {
	exited := exitedIn(snap)
	registered := make(map[registrationsKey]verbs.Registrations, len(snap.Registrations))
	for _, r := range snap.Registrations {
		key := registrationsKey{r.Process, r.Device, r.Kind, r.Errno}
		registered[key] = sumOfRegistrations(r, registered[key])
	}
	for key, now := range registered {
		at := seriesKey{owner: a.ownerOf(key.process), device: key.device, detail: key.kind.String()}
		before := a.registered[key]
		a.addRegistered(at, &now, &before)
		if key.errno == 0 && !exited[key.process] {
			a.set(at.with(mrRegions, at.detail), int64(now.Regions))
			a.set(at.with(mrRegistered, at.detail), int64(now.RegionBytes))
		}
	}
	a.registered = registered
}

// addRegistered adds the increase of the counters. Those that went back were
// started anew.
func (a *aggregator) addRegistered(at seriesKey, now, before *verbs.Registrations) {
	count := at.with(mrRegistrations, at.detail)
	if now.Errno != 0 {
		count.errorType = a.errnoName(now.Errno)
	}
	a.count(count, increaseOfCount(now.Count, before.Count))
	a.count(at.with(mrRegistrationSize, at.detail), increaseOfCount(now.Bytes, before.Bytes))
	a.count(at.with(mrRegistrationTime, at.detail), increaseOfCount(nanoseconds(now.Time), nanoseconds(before.Time)))
	a.count(at.with(mrDeregistrationTime, at.detail),
		increaseOfCount(nanoseconds(now.DeregistrationTime), nanoseconds(before.DeregistrationTime)))
}

// sumOfRegistrations adds up those of devices whose names could not be read.
func sumOfRegistrations(a, b verbs.Registrations) verbs.Registrations {
	a.Count += b.Count
	a.Bytes += b.Bytes
	a.Time += b.Time
	a.DeregistrationTime += b.DeregistrationTime
	a.Regions += b.Regions
	a.RegionBytes += b.RegionBytes
	return a
}

func exitedIn(snap *verbs.Snapshot) map[verbs.ProcessID]bool {
	exited := make(map[verbs.ProcessID]bool, len(snap.Exited))
	for _, process := range snap.Exited {
		exited[process] = true
	}
	return exited
}

// memoryKind is the attribute of a series of registrations, where it is known.
func memoryKind(k seriesKey) []metadata.MetricAttributeOption {
	return appendKnown(nil, metadata.WithRdmaMemoryKindMetricAttribute, k.detail)
}
