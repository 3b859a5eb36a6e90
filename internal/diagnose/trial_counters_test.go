package diagnose

import (
	"maps"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

type counts = map[fabric.CounterSource]map[string]uint64

// mlx5 is what the counters of an mlx5 device grew by: those named by that, the
// others that it has by nothing.
func mlx5(grew ...counts) counts {
	return add(counts{
		fabric.SourcePort: zeros("port_xmit_data", "port_rcv_data", "port_xmit_wait", "symbol_error", "link_downed", "link_error_recovery"),
		fabric.SourceHardware: zeros("rnr_nak_retry_err", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err",
			"roce_adp_retrans", "rp_cnp_handled", "out_of_sequence", "rx_icrc_encapsulated"),
		fabric.SourceEthtool: zeros("rx_discards_phy", "tx_discards_phy", "rx_global_pause", "rx_global_pause_duration", "tx_global_pause",
			"tx_global_pause_duration", "link_down_events_phy", "rx_crc_errors_phy", "rx_symbol_err_phy", "rx_pcs_symbol_err_phy",
			"outbound_pci_stalled_rd", "outbound_pci_stalled_wr", "outbound_pci_stalled_rd_events", "outbound_pci_stalled_wr_events",
			"outbound_pci_buffer_overflow"),
	}, grew...)
}

// softRoCE is the same of a soft-RoCE device.
func softRoCE(grew ...counts) counts {
	return add(counts{fabric.SourceHardware: zeros("rcvd_rnr_err", "rcvd_seq_err", "completer_retry_err", "link_downed", "sent_pkts")}, grew...)
}

func inHardware(name string, n uint64) counts { return counts{fabric.SourceHardware: {name: n}} }
func inEthtool(name string, n uint64) counts  { return counts{fabric.SourceEthtool: {name: n}} }
func inPort(name string, n uint64) counts     { return counts{fabric.SourcePort: {name: n}} }

func zeros(names ...string) map[string]uint64 {
	all := map[string]uint64{}
	for _, name := range names {
		all[name] = 0
	}
	return all
}

func add(to counts, some ...counts) counts {
	for _, more := range some {
		for source, names := range more {
			if to[source] == nil {
				to[source] = map[string]uint64{}
			}
			maps.Copy(to[source], names)
		}
	}
	return to
}

// counted is the difference of two samples a second apart between which the
// counters of port 1 grew by that, in the kernel's units.
func counted(grew counts) *Counters {
	started := time.Unix(1000, 0)
	before := fabric.Sample{At: started}
	later := fabric.Sample{At: started.Add(time.Second)}
	for _, known := range fabric.Counters() {
		n, ok := grew[known.Source][known.Name]
		if !ok {
			continue
		}
		reading := fabric.Reading{Device: device, Port: 1, Counter: &known, Name: known.Name, Count: 1000, Since: started}
		before.Readings = append(before.Readings, reading)
		reading.Count += n
		if known.Momentary {
			reading.Count = n
		}
		later.Readings = append(later.Readings, reading)
	}
	return NewCounters(&before, &later, device, 1)
}
