package fabric

import (
	"log/slog"
	"os"
	"time"
)

// Sample is the state of the devices and their counters at one moment.
type Sample struct {
	At       time.Time
	Devices  []DeviceState
	Readings []Reading
}

// DeviceState is a device and the PCI function it is on, which is nil without
// one, or when it could not be read.
type DeviceState struct {
	Device
	PCI *PCIDevice
}

// Sampler samples the devices and follows those that come and go: their list is
// read each time, what seldom changes of a device only when it appears. It is not
// safe for concurrent use.
type Sampler struct {
	reader   *Reader
	counters *CounterReader
	takes    func(device string) bool
	logger   *slog.Logger
	known    map[string]appeared
	// said is the last failure that was logged.
	said string
}

// appeared is a device as it was when it appeared.
type appeared struct {
	device os.FileInfo
	pci    *PCIDevice
}

// NewSampler returns a Sampler of the devices that takes wants, nil for all.
// counters reads the counters.
func NewSampler(reader *Reader, counters *CounterReader, takes func(device string) bool, logger *slog.Logger) *Sampler {
	if takes == nil {
		takes = func(string) bool { return true }
	}
	return &Sampler{reader: reader, counters: counters, takes: takes, logger: logger, known: map[string]appeared{}}
}

// Sample reads the devices. What cannot be read is left out, and logged when it
// is not what was logged last.
func (s *Sampler) Sample() Sample {
	all, err := s.reader.Devices()
	s.say(err)
	var devices []Device
	for _, device := range all {
		if s.takes(device.Name) {
			devices = append(devices, device)
		}
	}
	var sample Sample
	sample.Readings, sample.At = s.counters.Read(devices)
	now := map[string]appeared{}
	for _, device := range devices {
		now[device.Name] = s.follow(device)
		sample.Devices = append(sample.Devices, DeviceState{Device: device, PCI: now[device.Name].pci})
	}
	s.known = now
	return sample
}

// follow reads the PCI function of a device that is new, and the links of one
// that is not.
func (s *Sampler) follow(device Device) appeared {
	info, err := os.Stat(s.reader.devicePath(device.Name))
	if err != nil || device.PCIAddress == "" {
		return appeared{}
	}
	before, ok := s.known[device.Name]
	if ok && before.pci != nil && before.pci.Address == device.PCIAddress && os.SameFile(before.device, info) {
		refreshed := s.reader.RefreshLinks(*before.pci)
		before.pci = &refreshed
		return before
	}
	pci, err := s.reader.PCI(device.PCIAddress)
	if err != nil {
		s.say(err)
		return appeared{}
	}
	return appeared{device: info, pci: &pci}
}

func (s *Sampler) say(err error) {
	if err == nil || err.Error() == s.said {
		return
	}
	s.said = err.Error()
	s.logger.Warn("Some of an RDMA device cannot be read and is left out.", "error", err)
}
