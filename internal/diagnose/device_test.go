package diagnose

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// sampled is the difference of two samples of a recorded tree, a second apart,
// between which these lines were laid over it.
func sampled(t *testing.T, tree, device, lines string) *Counters {
	t.Helper()
	root := fabrictest.Tree(t, tree)
	now := time.Unix(1000, 0)
	logger := slog.New(slog.DiscardHandler)
	reader := fabric.NewReader(root)
	counters := fabric.NewCounterReader(reader, fabrictest.Ethtool{Root: root}, nil, logger, func() time.Time { return now })
	sampler := fabric.NewSampler(reader, counters, nil, logger)
	before := sampler.Sample()
	now = now.Add(time.Second)
	fabrictest.Add(t, root, lines)
	after := sampler.Sample()
	return NewCounters(&before, &after, device, 1)
}

const (
	portOne  = "class/infiniband/mlx5_0/ports/1/"
	ethStats = "ethtool/enp1s0np0/stats/"
)

func TestCountersOfRecordedTree(t *testing.T) {
	c := sampled(t, fabrictest.SingleRoCE, "mlx5_0", portOne+"hw_counters/packet_seq_err = 9\n"+
		ethStats+"rx_prio0_pause = 4\n"+ethStats+"rx_prio3_pause = 127\n"+ethStats+"rx_prio3_pause_duration = 34500")
	for _, test := range []struct {
		source fabric.CounterSource
		name   string
		want   float64
		read   bool
	}{
		{fabric.SourceHardware, "packet_seq_err", 4, true},
		{fabric.SourceHardware, "rnr_nak_retry_err", 0, true},
		{fabric.SourceHardware, "rcvd_seq_err", 0, false},
		// One priority had counted before, one begins.
		{fabric.SourceEthtool, "rx_prio[p]_pause", 11, true},
		{fabric.SourceEthtool, "rx_prio[p]_pause_duration", 0.03, true},
		// A priority that never counted is not among the readings, and was read.
		{fabric.SourceEthtool, "rx_prio[p]_cong_discard", 0, true},
		{fabric.SourceEthtool, "outbound_pci_stalled_wr", 0.42, true},
		{fabric.SourcePort, "no_such_counter", 0, false},
	} {
		got, read := c.Grew(test.source, test.name)
		if got < test.want-1e-9 || got > test.want+1e-9 || read != test.read {
			t.Errorf("%s %s: %v, %v, want %v, %v", test.source, test.name, got, read, test.want, test.read)
		}
	}
}

// Where ethtool cannot be asked, the counters of priorities are not known to be
// zero.
func TestCountersWithoutEthtool(t *testing.T) {
	c := counted(softRoCE())
	if _, read := c.Grew(fabric.SourceEthtool, "rx_prio[p]_pause"); read {
		t.Error("soft-RoCE has no pauses to read")
	}
	if _, read := (*Counters)(nil).Grew(fabric.SourceEthtool, "rx_prio[p]_pause"); read {
		t.Error("nothing was read")
	}
}

// Bytes are told apart by port whichever port the burst is of.
func TestCountersOfAllPorts(t *testing.T) {
	var sent fabric.Counter
	for _, known := range fabric.Counters() {
		if known.Name == "port_xmit_data" {
			sent = known
		}
	}
	at := time.Unix(1000, 0)
	sample := func(at time.Time, first, second uint64) *fabric.Sample {
		s := &fabric.Sample{At: at}
		for i, n := range []uint64{first, second} {
			s.Readings = append(s.Readings, fabric.Reading{Device: device, Port: i + 1, Counter: &sent, Name: sent.Name, Count: n, Since: time.Unix(0, 0)})
		}
		return s
	}
	c := NewCounters(sample(at, 10, 10), sample(at.Add(time.Second), 110, 20), device, 2)
	if c.Sent[1] != 400 || c.Sent[2] != 40 {
		t.Errorf("sent %v", c.Sent)
	}
	if own, _ := c.Grew(fabric.SourcePort, sent.Name); own != 40 {
		t.Errorf("port 2 sent %v", own)
	}
}

// taken is a sample of these readings of port 1.
func taken(at int64, readings ...fabric.Reading) *fabric.Sample {
	for i := range readings {
		readings[i].Device, readings[i].Port = device, 1
	}
	return &fabric.Sample{At: time.Unix(at, 0), Readings: readings}
}

// read is a reading of a counter that was first read at 1000 s.
func read(source fabric.CounterSource, name string, count uint64) fabric.Reading {
	for _, known := range fabric.Counters() {
		if known.Source == source && known.Name == name {
			return fabric.Reading{Counter: &known, Name: strings.ReplaceAll(name, "[p]", "3"), Count: count, Since: time.Unix(1000, 0)}
		}
	}
	panic("there is no counter " + name)
}

func incomplete(r fabric.Reading) fabric.Reading {
	r.Incomplete = true
	return r
}

// That a counter did not grow says something only where it could have.
func TestCountersThatCannotTell(t *testing.T) {
	const port, ethtool, pauses = fabric.SourcePort, fabric.SourceEthtool, "rx_prio[p]_pause"
	discards := read(ethtool, "rx_discards_phy", 0)
	for name, test := range map[string]struct {
		source        fabric.CounterSource
		counter       string
		before, after *fabric.Sample
		want          float64
		read          bool
	}{
		"at its highest value":      {port, "port_xmit_wait", taken(1001, incomplete(read(port, "port_xmit_wait", 9))), taken(1002, incomplete(read(port, "port_xmit_wait", 9))), 0, false},
		"reaches its highest value": {port, "port_xmit_wait", taken(1001, read(port, "port_xmit_wait", 9)), taken(1002, incomplete(read(port, "port_xmit_wait", 12))), 3, true},
		"goes on after a failure":   {port, "port_xmit_wait", taken(1001), taken(1002, read(port, "port_xmit_wait", 12)), 0, false},
		"began anew":                {port, "port_xmit_wait", taken(999, read(port, "port_xmit_wait", 12)), taken(1002, read(port, "port_xmit_wait", 1)), 0, false},
		"a priority begins":         {ethtool, pauses, taken(1001, discards), taken(1002, discards, read(ethtool, pauses, 7)), 7, true},
		"a priority after a failure of its interface": {
			ethtool, pauses, taken(1001), taken(1002, discards, read(ethtool, pauses, 7)), 0, false,
		},
		"a priority after a failure of a member of the bond": {
			ethtool, pauses, taken(1001, incomplete(discards)), taken(1002, discards, read(ethtool, pauses, 7)), 0, false,
		},
	} {
		c := NewCounters(test.before, test.after, device, 1)
		if got, known := c.Grew(test.source, test.counter); got != test.want || known != test.read {
			t.Errorf("%s: %v, %v, want %v, %v", name, got, known, test.want, test.read)
		}
	}
}

// The recorded tree of an mlx5 device on which a priority was paused.
func TestPauseOfRecordedTree(t *testing.T) {
	b := slow(10, 5*time.Millisecond)
	b.Counters = sampled(t, fabrictest.SingleRoCE, "mlx5_0", ethStats+"rx_prio3_pause = 620\n"+ethStats+"rx_prio3_pause_duration = 49500")
	if got := Judge(b, networkCauses()); got.Cause != "pfc_received" || got.Confidence != Likely {
		t.Errorf("%+v", got)
	}
}

// EFA counts all retransmissions and those after a timeout.
func TestLossOfRecordedEFA(t *testing.T) {
	b := slow(10, 5*time.Millisecond)
	each(b, func(r *verbs.Completion) { r.Path.AckTimeout = 0 })
	const counters = "class/infiniband/rdmap0s6/ports/1/hw_counters/"
	b.Counters = sampled(t, fabrictest.EFA, "rdmap0s6", counters+"retrans_pkts = 20\n"+counters+"retrans_timeout_events = 8")
	if got := Judge(b, networkCauses()); got.Cause != "packet_loss" || got.Confidence != Certain {
		t.Errorf("%+v", got)
	}
}

// Priorities that were paused at the same time were paused once.
func TestPausesOfPrioritiesOverlap(t *testing.T) {
	c := sampled(t, fabrictest.SingleRoCE, "mlx5_0", ethStats+"rx_prio0_pause_duration = 400000\n"+ethStats+"rx_prio3_pause_duration = 504500")
	if p := pfcPause(c, "rx"); p.time != 500*time.Millisecond || !p.timed {
		t.Errorf("paused for %s (%v)", p.time, p.timed)
	}
}
