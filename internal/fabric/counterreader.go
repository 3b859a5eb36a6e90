package fabric

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// countersAge is how long a reading is believed: on some NICs each one is a
// command to the firmware. It is a second, less what a reader that comes every
// second may be early.
const countersAge = 900 * time.Millisecond

// CounterReader reads the counters of devices and adds up what they grow by. It
// is safe for concurrent use.
type CounterReader struct {
	reader  *Reader
	ethtool Ethtool
	takes   func(device string) bool
	logger  *slog.Logger
	now     func() time.Time
	known   catalogue

	mu       sync.Mutex
	readAt   time.Time
	readings []Reading
	totals   map[totalKey]*total
	refused  map[totalKey]refusal
}

type totalKey struct {
	device string
	port   int
	source CounterSource
	// netdev is the interface of SourceEthtool.
	netdev, name string
}

// NewCounterReader returns a CounterReader. takes says which devices are read,
// nil takes all; ethtool may be nil; now is the clock.
func NewCounterReader(reader *Reader, ethtool Ethtool, takes func(device string) bool, logger *slog.Logger, now func() time.Time) *CounterReader {
	if takes == nil {
		takes = func(string) bool { return true }
	}
	return &CounterReader{
		reader: reader, ethtool: ethtool, takes: takes, logger: logger, now: now, known: newCatalogue(),
		totals: map[totalKey]*total{}, refused: map[totalKey]refusal{},
	}
}

// Read returns the counters of the devices and when they were read, which is at
// most once a second. A counter that cannot be read is left out, and said once
// until it can be read; then it goes on where it was.
func (c *CounterReader) Read(devices []Device) ([]Reading, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); c.readAt.IsZero() || now.Sub(c.readAt) >= countersAge {
		c.readAt = now
		c.readings = c.readAll(devices)
	}
	return slices.Clone(c.readings), c.readAt
}

func (c *CounterReader) readAll(devices []Device) []Reading {
	pass := pass{CounterReader: c, index: map[series]int{}, seen: map[totalKey]bool{}}
	present := map[string]bool{}
	for _, device := range devices {
		if c.takes(device.Name) {
			pass.readDevice(device)
			present[device.Name] = true
		}
	}
	maps.DeleteFunc(c.refused, func(key totalKey, _ refusal) bool { return !present[key.device] })
	for key, sum := range c.totals {
		if !pass.seen[key] && !pass.addAbsent(key, sum) && !c.fails(key) {
			delete(c.totals, key)
		}
	}
	slices.SortFunc(pass.readings, func(a, b Reading) int { return seriesOf(a).compare(seriesOf(b)) })
	return pass.readings
}

// pass is one reading of all counters.
type pass struct {
	*CounterReader
	device   os.FileInfo
	readings []Reading
	// index is where a series is among the readings.
	index map[series]int
	seen  map[totalKey]bool
	// failed are the counters of the device that are left alone from now on.
	failed []error
}

func (p *pass) readDevice(device Device) {
	path := p.reader.devicePath(device.Name)
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	p.device, p.failed = info, nil
	hardware := false
	for _, port := range device.Ports {
		directory := filepath.Join(path, "ports", strconv.Itoa(port.Number))
		p.readDirectory(device.Name, port.Number, SourcePort, directory)
		hardware = p.readDirectory(device.Name, port.Number, SourceHardware, directory) || hardware
	}
	if !hardware {
		// Where ports have them too, these are the same once more.
		p.readDirectory(device.Name, 0, SourceHardware, path)
	}
	p.readInterfaces(device)
	p.readAER(device)
	if len(p.failed) > 0 {
		p.logger.Warn("Some counters of an RDMA device cannot be read and are left out.",
			"device", device.Name, "error", errors.Join(p.failed...))
	}
}

// readDirectory reports whether there is such a directory.
func (p *pass) readDirectory(device string, port int, source CounterSource, above string) bool {
	directory := filepath.Join(above, string(source))
	entries, err := os.ReadDir(directory)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		found, ok := p.known.find(source, entry.Name())
		if !ok {
			continue
		}
		key := totalKey{device: device, port: port, source: source, name: entry.Name()}
		p.readOne(key, found, func() (uint64, error) {
			text, err := attribute(directory, entry.Name())
			if err != nil {
				return 0, err
			}
			return strconv.ParseUint(text, 10, 64)
		})
	}
	return true
}

func (p *pass) readInterfaces(device Device) {
	if p.ethtool == nil || device.PCIAddress == "" {
		return
	}
	for _, port := range device.Ports {
		for _, netdev := range device.interfaces(port) {
			p.readInterface(device, port.Number, netdev)
		}
	}
}

func (p *pass) readInterface(device Device, port int, netdev string) {
	whole := totalKey{device: device.Name, source: SourceEthtool, netdev: netdev}
	if p.isRefused(whole) {
		return
	}
	stats, own, err := p.statistics(device, netdev)
	if unplugged(err) {
		// There is none of that name, as in a container with its own network.
		return
	}
	if err != nil {
		p.refuse(whole, err)
		return
	}
	delete(p.refused, whole)
	for name, raw := range stats {
		found, ok := p.known.find(SourceEthtool, name)
		if !ok {
			continue
		}
		key := whole
		key.name, key.port = name, port
		if found.OfDevice() {
			// The other ports of the NIC are on the same link.
			key.port = 0
			if !own {
				continue
			}
		}
		p.add(key, found, raw)
	}
}

func (p *pass) readAER(device Device) {
	if device.PCIAddress == "" {
		return
	}
	for name := range p.known[SourceAER] {
		found, _ := p.known.find(SourceAER, name)
		key := totalKey{device: device.Name, source: SourceAER, name: name}
		p.readOne(key, found, func() (uint64, error) {
			text, err := attribute(p.reader.pciPath(device.PCIAddress), name)
			if err != nil {
				return 0, err
			}
			return parseAER(text)
		})
	}
}

// readOne reads a counter, unless it was refused not long ago.
func (p *pass) readOne(key totalKey, found match, read func() (uint64, error)) {
	if p.isRefused(key) {
		return
	}
	raw, err := read()
	switch {
	case err == nil:
		delete(p.refused, key)
		p.add(key, found, raw)
	case !unplugged(err):
		p.refuse(key, err)
	}
}

// add notes a value.
func (p *pass) add(key totalKey, found match, raw uint64) {
	p.seen[key] = true
	sum := p.totals[key]
	if sum == nil || !os.SameFile(sum.device, p.device) {
		sum = &total{last: raw, since: p.readAt, device: p.device, found: found}
		p.totals[key] = sum
	}
	sum.add(raw, found.Wraps)
	reading := sum.reading(key)
	reading.Incomplete = found.full(raw)
	if found.Momentary {
		reading.Count = raw
	}
	if found.repeated() && reading.Count == 0 {
		// Most priorities and lanes never see anything.
		return
	}
	p.merge(reading)
}

// addAbsent keeps what an interface counted that has left its bond, or did not
// answer, for as long as the others are there: a sum does not go down.
func (p *pass) addAbsent(key totalKey, sum *total) bool {
	reading := sum.reading(key)
	_, there := p.index[seriesOf(reading)]
	if key.netdev == "" || !there || sum.found.Momentary {
		return false
	}
	// One that has left counts nothing of what the others carry.
	reading.Incomplete = p.fails(key)
	p.merge(reading)
	return true
}

func (t *total) reading(key totalKey) Reading {
	return Reading{
		Device: key.device, Port: key.port, Counter: t.found.Counter, Name: key.name, Priority: t.found.priority,
		Count: t.sum, Since: t.since,
	}
}

// merge notes a reading. Of several sources of one series the first counts;
// several interfaces of a bond are added up, and of momentary values the highest
// counts.
func (p *pass) merge(reading Reading) {
	at := seriesOf(reading)
	i, there := p.index[at]
	switch {
	case !there:
		p.index[at] = len(p.readings)
		p.readings = append(p.readings, reading)
	case p.readings[i].Counter != reading.Counter:
	case reading.Counter.Momentary:
		p.readings[i].Count = max(p.readings[i].Count, reading.Count)
	default:
		p.readings[i].Count += reading.Count
		p.readings[i].Incomplete = p.readings[i].Incomplete || reading.Incomplete
		if reading.Since.Before(p.readings[i].Since) {
			p.readings[i].Since = reading.Since
		}
	}
}
