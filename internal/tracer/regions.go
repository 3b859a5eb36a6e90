package tracer

import (
	"fmt"
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// registrations reads what all processes registered.
func (s *coreSide) registrations() ([]verbs.Registrations, error) {
	var key bpf.ResourcesRegistrationsKey
	var value bpf.ResourcesRegistrations
	var all []verbs.Registrations
	names := s.deviceNames()
	entries := s.collection.Maps[bpf.ResourcesMapRegistered].Iterate()
	for entries.Next(&key, &value) {
		all = append(all, registrationsOf(&key, &value, names[key.Device]))
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("reading the memory registrations: %w", err)
	}
	return all, nil
}

func registrationsOf(key *bpf.ResourcesRegistrationsKey, value *bpf.ResourcesRegistrations, device string) verbs.Registrations {
	return verbs.Registrations{
		Process:            verbs.ProcessID{TGID: key.Tgid, Incarnation: key.Incarnation},
		Device:             device,
		Kind:               verbs.MemoryKind(key.Kind),
		Errno:              key.Error,
		Count:              value.Count,
		Bytes:              value.Bytes,
		Time:               time.Duration(value.TimeNs),
		DeregistrationTime: time.Duration(value.EndedTimeNs),
		Regions:            value.Regions,
		RegionBytes:        value.RegionBytes,
	}
}

// forgetRegions drops what processes that are gone registered.
func (s *coreSide) forgetRegions(isGone func(tgid uint32, incarnation uint64) bool) error {
	var key bpf.ResourcesRegistrationsKey
	var value bpf.ResourcesRegistrations
	return deleteMatching(s.collection.Maps[bpf.ResourcesMapRegistered], &key, &value, func() bool {
		return isGone(key.Tgid, key.Incarnation)
	})
}

// registrations reads what all processes registered, nothing without probes.
func (r *resources) registrations() ([]verbs.Registrations, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.side == nil {
		return nil, nil
	}
	return r.side.registrations()
}

func (r *resources) forgetRegions(isGone func(tgid uint32, incarnation uint64) bool) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.side == nil {
		return nil
	}
	return r.side.forgetRegions(isGone)
}

// memoryOf returns what a process had registered under a key of a device when it
// posted, in nanoseconds of CLOCK_MONOTONIC. Nothing is known of a region that was
// registered after that, in place of another one with its key, nor of one that
// another process shares.
func (r *resources) memoryOf(process verbs.ProcessID, device string, key uint32, posted uint64) verbs.Memory {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.side == nil || device == "" || key == 0 {
		return verbs.Memory{}
	}
	region, ok := r.side.region(key, device)
	if !ok || !wasUsable(&region, process, posted) {
		return verbs.Memory{}
	}
	return memoryOfRegion(&region)
}

func wasUsable(region *bpf.ResourcesRegion, process verbs.ProcessID, posted uint64) bool {
	owner := verbs.ProcessID{TGID: region.Tgid, Incarnation: region.Incarnation}
	return owner == process && region.SinceNs <= posted && (region.EndedNs == 0 || region.EndedNs > posted)
}

func memoryOfRegion(region *bpf.ResourcesRegion) verbs.Memory {
	return verbs.Memory{
		Kind: verbs.MemoryKind(region.Kind), Exporter: commName(region.Exporter[:]), GPU: gpuUUID(region.Gpu),
	}
}

// gpuUUID writes a UUID as NVIDIA's tools do, "" for none.
func gpuUUID(raw [16]byte) string {
	if raw == [16]byte{} {
		return ""
	}
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

func (s *coreSide) region(lkey uint32, device string) (region bpf.ResourcesRegion, ok bool) {
	index, ok := s.deviceIndex(device)
	if !ok {
		return region, false
	}
	key := bpf.ResourcesRegionKey{Device: index, Lkey: lkey}
	err := s.collection.Maps[bpf.ResourcesMapRegions].Lookup(&key, &region)
	return region, err == nil
}

// decideAboutRegistrants asks about the processes that registered memory, whether
// or not they have queues. It is called with mu held, and leaves the asking to the
// background: what a process is asked about may read /proc, and wait.
func (t *Tracer) decideAboutRegistrants() error {
	all, err := t.resources.registrations()
	if err != nil {
		return err
	}
	for i := range all {
		id := all[i].Process
		if _, asked := t.registrants[id]; asked {
			continue
		}
		t.registrants[id] = false
		t.look(func() {
			t.cfg.NewProcess(id, "")
			t.keepRegistrant(id, t.cfg.TakesProcess(int(id.TGID)))
		})
	}
	return nil
}

// keepRegistrant keeps an answer apart from those about queues, which were asked for
// at another moment, and forgets that of a process that has ended meanwhile.
func (t *Tracer) keepRegistrant(id verbs.ProcessID, taken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, lives := t.registrants[id]; lives {
		t.registrants[id] = taken
	}
}

// readRegistrations returns what the processes that are traced registered on
// devices that are. It is called with mu held.
func (t *Tracer) readRegistrations() ([]verbs.Registrations, error) {
	all, err := t.resources.registrations()
	if err != nil {
		return nil, err
	}
	var taken []verbs.Registrations
	for i := range all {
		if t.registrants[all[i].Process] && t.cfg.TakesDevice(all[i].Device) {
			taken = append(taken, all[i])
		}
	}
	return taken, nil
}
