package diagnose

import "github.com/rdmaradar/rdmaradar/internal/fabric"

// family are the counters of several drivers that count one thing.
type family struct {
	source fabric.CounterSource
	names  []string
}

// grew is what they grew by together, and the name of the one that grew most, or
// of one that was read; read is false when none was.
func (f family) grew(c *Counters) (sum float64, name string, read bool) {
	most := -1.0
	for _, n := range f.names {
		if grew, ok := c.Grew(f.source, n); ok {
			sum, read = sum+grew, true
			if grew > most {
				most, name = grew, n
			}
		}
	}
	return sum, name, read
}

func hardware(names ...string) family { return family{fabric.SourceHardware, names} }
func ethtool(names ...string) family  { return family{fabric.SourceEthtool, names} }

// rnrReceived count that a peer had posted no receive.
func rnrReceived() family {
	return hardware("rnr_nak_retry_err", "rcvd_rnr_err", "rnr_naks_rcvd", "RNR received")
}

// lossSeen count that the peer, or the requester, saw a gap: mlx5, soft-RoCE,
// bnxt_re, irdma.
func lossSeen() family {
	return hardware("packet_seq_err", "implied_nak_seq_err", "rcvd_seq_err", "seq_err_naks_rcvd", "missing_resp",
		"Nak Sequence Error", "Nak Sequence Error Implied")
}

// timeouts count that an acknowledgement did not come: mlx5, bnxt_re, irdma, EFA.
func timeouts() family {
	return hardware("local_ack_timeout_err", "to_retransmits", "RTO", "retrans_timeout_events")
}

// retransmissions is how often something was sent again, and why.
type retransmissions struct {
	// gaps are those after a gap was seen, timeouts those after a timeout.
	gaps, timeouts float64
	// gapsName and timeoutsName are counters that say so.
	gapsName, timeoutsName string
	// known is true when one of the kinds is counted, complete when both are.
	known, complete bool
}

func (r retransmissions) all() float64 { return r.gaps + r.timeouts }

// newRetransmissions reads the counters. soft-RoCE and EFA count all
// retransmissions and one of the two kinds: the rest are of the other.
func newRetransmissions(c *Counters) retransmissions {
	var r retransmissions
	var gaps, waited bool
	r.gaps, r.gapsName, gaps = lossSeen().grew(c)
	r.timeouts, r.timeoutsName, waited = timeouts().grew(c)
	r.known, r.complete = gaps || waited, gaps && waited
	if all, ok := c.Grew(fabric.SourceHardware, "completer_retry_err"); ok {
		r.timeouts, r.timeoutsName, r.known = max(all-r.gaps, 0), "completer_retry_err", true
		r.complete = true
	}
	if all, ok := c.Grew(fabric.SourceHardware, "retrans_pkts"); ok {
		r.gaps, r.gapsName, r.known = max(all-r.timeouts, 0), "retrans_pkts", true
		r.complete = true
	}
	return r
}

// troubles are counters, besides the retransmissions, of which each says by itself
// that something was late outside of this host's threads.
func troubles() []family {
	return append(linkDownCounters(), rnrReceived(),
		family{fabric.SourcePort, []string{"link_error_recovery"}},
		hardware("rp_cnp_handled", "rx_cnp_pkts", "cnpHandled"),
		ethtool("rx_prio[p]_pause", "rx_global_pause", "rx_discards_phy", "tx_discards_phy"))
}

// retransmitted are counters of which each says that something was sent again.
func retransmitted() []family {
	return []family{lossSeen(), timeouts(), hardware("completer_retry_err", "retrans_pkts", "roce_adp_retrans")}
}
