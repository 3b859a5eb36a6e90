package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/radarclient"
	"github.com/rdmaradar/rdmaradar/internal/text"
)

// Health is whether the node's NICs are as jobs need them.
type Health struct {
	// Faults are what is wrong, none on a healthy node. NotReached are the checks that did
	// not end in time; where those are of the devices, and a driver holds them in the
	// kernel, that is a fault.
	Faults     []string
	NotReached []string
	// Said is what is told besides.
	Said []string
}

// devicesName and pcieName are the checks that decide about health.
const (
	devicesName = "devices"
	pcieName    = "pcie"
)

// CheckHealth looks at devices, ports and PCIe links, and whether a collector traces,
// which is told and decides nothing: a node is not to be drained because nobody watches.
// Nor is it for settings such as ACS, which all nodes of a fleet have alike, for a port
// that is slower than another, or for a link that may be saving power. Where nothing can
// be seen of devices, or not in time though no driver holds who looks, that is an error.
// Fewer RDMA devices than the least are a fault: a NIC without its driver makes none.
func (s *System) CheckHealth(ctx context.Context, least int) (Health, error) {
	if !s.exists("sys/class") {
		return Health{}, errors.New("no sysfs is mounted at /sys, in which devices are: run this on the host, or mount it")
	}
	report := Run(ctx, []Check{
		{devicesName, func(ctx context.Context) []Finding { return append(s.checkPorts(ctx), s.tooFew(least)...) }},
		{pcieName, s.checkLanes},
		{"collector", func(ctx context.Context) []Finding { return tracedShortly(s.collector.Tracing(ctx)) }},
	})
	return judgeHealth(&report, s.held)
}

// tracedShortly says in a few words whether a collector traces.
func tracedShortly(tracing radar.Tracing, err error) []Finding {
	switch {
	case errors.Is(err, radarclient.ErrNotRunning):
		return []Finding{{Level: Note, What: "no collector answers"}}
	case errors.Is(err, radarclient.ErrDenied):
		return []Finding{{Level: Note, What: "the collector was not asked, permission denied"}}
	case errors.Is(err, radarclient.ErrNoView):
		return []Finding{{Level: Note, What: "who answers is no collector"}}
	case err != nil:
		return []Finding{{Level: Note, What: "the collector does not tell whether it traces"}}
	case tracing.Phase == radar.Running || tracing.Phase == radar.Impaired:
		return []Finding{{What: "traced"}}
	default:
		return []Finding{{Level: Note, What: "the collector traces nothing"}}
	}
}

// judgeHealth asks only whether the kernel holds who looks where a check that decides was
// not reached: that takes time.
func judgeHealth(report *Report, held func() bool) (Health, error) {
	h := healthOf(report)
	undecided := slices.IndexFunc(h.NotReached, func(name string) bool { return name == devicesName || name == pcieName })
	if undecided < 0 {
		return h, nil
	}
	name := h.NotReached[undecided]
	switch {
	case held():
		h.Faults = append(h.Faults, fmt.Sprintf("reading the %s did not end in time: a driver or its firmware does not answer", name))
	case h.Healthy():
		return Health{}, fmt.Errorf("reading the %s did not end in time, and no thread of it is held in state D: the node may be too busy, look at its load", name)
	}
	return h, nil
}

// healthOf is what the checks that ended tell.
func healthOf(report *Report) Health {
	h := Health{NotReached: report.NotReached}
	active := slices.ContainsFunc(report.Findings, func(f Finding) bool { return f.Check == devicesName && f.Level == OK })
	for _, f := range report.Findings {
		switch {
		case f.Level >= Warning:
			h.Faults = append(h.Faults, f.What)
		case f.Check == devicesName && !active:
			// That there is no device is well on a node without, and to be read on others.
			h.Said = append(h.Said, f.What)
		case f.Check == "collector" || f.Level == OK && f.Check == devicesName:
			h.Said = append(h.Said, f.What)
		}
	}
	return h
}

// Healthy reports whether there is no fault.
func (h *Health) Healthy() bool { return len(h.Faults) == 0 }

// WriteHealth writes one line.
func WriteHealth(to io.Writer, h *Health) error {
	word, parts := "healthy", h.Said
	if !h.Healthy() {
		word, parts = "not healthy", h.Faults
	}
	if len(h.NotReached) > 0 {
		parts = append(slices.Clone(parts), "not reached: "+strings.Join(h.NotReached, ", "))
	}
	line := word
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, "; ")
	}
	_, err := fmt.Fprintln(to, text.Clean(line, maxText))
	return err
}
