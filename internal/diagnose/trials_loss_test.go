package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// lossTrials are those of causes that the transport counts.
func lossTrials() map[string]trials {
	return map[string]trials{
		"receiver_not_ready":      rnrTrials(),
		"packet_loss":             packetLossTrials(),
		"ack_timeout":             ackTimeoutTrials(),
		"adaptive_retransmission": adaptiveTrials(),
		"bad_cable":               badCableTrials(),
		"link_down":               linkDownTrials(),
	}
}

func failing(status verbs.Status) func(*Burst) {
	return func(b *Burst) { each(b, func(r *verbs.Completion) { r.Status = status }) }
}

// failsOne lets the first request fail.
func failsOne(status verbs.Status) func(*Burst) {
	return func(b *Burst) { b.Slow[0].Status = status }
}

// stuckFor makes the burst one of a single request that is outstanding.
func stuckFor(age time.Duration) func(*Burst) {
	return func(b *Burst) {
		r := b.Slow[0].WorkRequest
		r.Posted = b.End - uint64(age)
		b.Slow, b.Stuck, b.Completions = nil, []verbs.Stuck{{WorkRequest: r, Age: age}}, 0
	}
}

func noneGotThrough(b *Burst) { b.Completions = uint64(len(b.Slow)) }

func rnrTrials() trials {
	rnr := func(n uint64) counts { return mlx5(inHardware("rnr_nak_retry_err", n)) }
	return trials{
		brings: []trial{
			{"a NAK for each, on plateaus of the table", byQuanta(5120*time.Microsecond, 10, 6, 4), rnr(34), "receiver_not_ready", Certain},
			// Whatever takes always as long is near a multiple of one of the 32 times.
			{"a NAK for each, on one plateau", slowBy(10, 5140*time.Microsecond), rnr(10), "receiver_not_ready", Likely},
			{"a NAK for each, without a plateau", slowBy(2, 4*time.Millisecond), rnr(2), "receiver_not_ready", Likely},
			{"soft-RoCE, whose timers are jiffies", slowBy(10, 16*time.Millisecond), softRoCE(inHardware("rcvd_rnr_err", 10)), "receiver_not_ready", Likely},
			{
				"soft-RoCE, with gaps and timeouts that follow from it", slowBy(2, 300*time.Millisecond),
				softRoCE(inHardware("rcvd_rnr_err", 40), inHardware("rcvd_seq_err", 3), inHardware("completer_retry_err", 8)), "receiver_not_ready", Likely,
			},
			// As 6.12 counted for 200 sends to a receiver with room for one.
			{"soft-RoCE, where the timeout runs on meanwhile", slowBy(80, 8*time.Millisecond), softRoCE(inHardware("rcvd_rnr_err", 153), inHardware("completer_retry_err", 97)), "receiver_not_ready", Likely},
			{"given up", failing(statusRNRRetryExceeded), nil, "receiver_not_ready", Certain},
			{"most of the time given up", after(slowBy(10, 5*time.Millisecond), func(b *Burst) { b.Slow[0] = request(b.Start, 150*time.Millisecond) }, failsOne(statusRNRRetryExceeded)), mlx5(), "receiver_not_ready", Likely},
			{"still waiting", stuckFor(time.Second), rnr(30), "receiver_not_ready", Likely},
			{"several queue pairs to one server", neighbours(Neighbours{Active: 9, Slow: 4, ActiveOfPeer: 4, SlowOfPeer: 4}), rnr(10), "receiver_not_ready", Likely},
		},
		against: []trial{
			{name: "no NAK", counters: mlx5()},
			{name: "not counted"},
		},
		lookalikes: []trial{
			{"one of ten given up, and something else", after(slowBy(10, 5*time.Millisecond), failsOne(statusRNRRetryExceeded)), mlx5(), "receiver_not_ready", Possible},
			{"one-sided operations beside others that wait", operation(verbs.OpRDMAWrite), rnr(10), "receiver_not_ready", Possible},
			{"too few NAKs, and something else", nil, rnr(2), "receiver_not_ready", Possible},
			{"NAKs of queue pairs to other peers", after(slowBy(10, 3*time.Millisecond), neighbours(Neighbours{Active: 9, Slow: 4})), rnr(10), "receiver_not_ready", Possible},
			{"a plateau by loss", slowBy(10, ackTimeout), mlx5(inHardware("local_ack_timeout_err", 10)), "packet_loss", Certain},
		},
	}
}

func packetLossTrials() trials {
	return trials{
		brings: []trial{
			{"gaps", nil, mlx5(inHardware("packet_seq_err", 10)), "packet_loss", Certain},
			{"responses lost", operation(verbs.OpRDMARead), mlx5(inHardware("implied_nak_seq_err", 8)), "packet_loss", Likely},
			{"gaps on EFA", nil, add(counts{}, inHardware("retrans_pkts", 12), inHardware("retrans_timeout_events", 1)), "packet_loss", Certain},
			{"timeouts between others that get through", slowBy(10, ackTimeout+time.Millisecond), mlx5(inHardware("local_ack_timeout_err", 10)), "packet_loss", Certain},
			{"soft-RoCE, whose timeout runs on from earlier requests", slowBy(6, 40*time.Millisecond), softRoCE(inHardware("completer_retry_err", 6)), "packet_loss", Certain},
			// As 6.12 counted for 200 writes over a link that loses 3 %.
			{"soft-RoCE, three of two hundred", slowBy(3, 72*time.Millisecond), softRoCE(inHardware("completer_retry_err", 3)), "packet_loss", Certain},
			{"counted over ten seconds, as many as are slow", over(10 * time.Second), mlx5(inHardware("packet_seq_err", 12)), "packet_loss", Likely},
			{"it is not known what others did", func(b *Burst) { b.HasCompletions = false }, mlx5(inHardware("packet_seq_err", 10)), "packet_loss", Likely},
			{"gaps that healthy queue pairs may have had", neighbours(Neighbours{Active: 9}), mlx5(inHardware("packet_seq_err", 10)), "packet_loss", Likely},
			{"timeouts, which healthy queue pairs do not have", after(slowBy(10, ackTimeout+time.Millisecond), neighbours(Neighbours{Active: 9})), mlx5(inHardware("local_ack_timeout_err", 10)), "packet_loss", Certain},
			{"other queue pairs lose as well", neighbours(Neighbours{Active: 9, Slow: 4, ActiveOfPeer: 2, SlowOfPeer: 1}), mlx5(inHardware("packet_seq_err", 30)), "packet_loss", Likely},
		},
		against: []trial{
			{name: "nothing sent again", counters: mlx5()},
			{name: "not counted"},
		},
		lookalikes: []trial{
			{
				"a path that takes longer than the timeout", after(slowBy(9, 104*time.Millisecond), noneGotThrough),
				softRoCE(inHardware("completer_retry_err", 5)), "network_delay", Likely,
			},
			{
				"a path that may take longer than the timeout", after(slowBy(4, 104*time.Millisecond), noneGotThrough),
				softRoCE(inHardware("completer_retry_err", 4)), "packet_loss", Possible,
			},
			{
				"a receiver that is not ready drops what follows", slowBy(2, 4*time.Millisecond),
				mlx5(inHardware("rnr_nak_retry_err", 4), inHardware("packet_seq_err", 3)), "receiver_not_ready", Likely,
			},
			{"one gap, and something else", slowBy(40, 5*time.Millisecond), mlx5(inHardware("packet_seq_err", 4)), "packet_loss", Possible},
			{"gaps take no second", slowBy(1, 900*time.Millisecond), mlx5(inHardware("packet_seq_err", 1)), "packet_loss", Possible},
			{"timeouts of others: late by less than one", slowBy(10, 2*time.Millisecond), mlx5(inHardware("local_ack_timeout_err", 10)), "packet_loss", Possible},
			{"spurious retransmissions of a queue that is too long", behindOthers, softRoCE(inHardware("completer_retry_err", 2)), "packet_loss", Possible},
			{"a steady loss of ten seconds, and something else", over(10 * time.Second), mlx5(inHardware("packet_seq_err", 400)), "packet_loss", Possible},
			{"too little is known of the queue pair", func(b *Burst) { b.HasCompletions = false }, softRoCE(inHardware("completer_retry_err", 10)), "packet_loss", Possible},
		},
	}
}

func ackTimeoutTrials() trials {
	timeouts := func(n uint64) counts { return mlx5(inHardware("local_ack_timeout_err", n)) }
	return trials{
		brings: []trial{
			{"given up", after(slowBy(1, 500*time.Millisecond), failing(statusRetryExceeded)), timeouts(8), "ack_timeout", Certain},
			{"several in a row, and none got through", after(slowBy(1, 6*ackTimeout), noneGotThrough), timeouts(6), "ack_timeout", Likely},
			{"still waiting", stuckFor(time.Second), softRoCE(inHardware("completer_retry_err", 12)), "ack_timeout", Likely},
			{"a plateau without counters", slowBy(7, 2*ackTimeout), nil, "ack_timeout", Possible},
			{"plateaus of a longer timeout without counters", byQuanta(ackTimeout*3/2, 5, 5, 5), nil, "ack_timeout", Possible},
		},
		against: []trial{
			{name: "no timeout", burst: slowBy(5, ackTimeout), counters: mlx5(inHardware("packet_seq_err", 5))},
			{name: "no plateau and no counters"},
			{name: "too few for a plateau, and no counters", burst: slowBy(3, ackTimeout)},
			{name: "one plateau that is no timeout, and no counters", burst: slowBy(20, ackTimeout*3/2)},
		},
		lookalikes: []trial{
			{"single packets lost", slowBy(5, ackTimeout), timeouts(5), "packet_loss", Certain},
			{
				"a receiver that is not ready for long", after(slowBy(1, 300*time.Millisecond), noneGotThrough),
				softRoCE(inHardware("rcvd_rnr_err", 20), inHardware("completer_retry_err", 4)), "receiver_not_ready", Likely,
			},
			{
				"a path that takes longer than the timeout", after(slowBy(9, 104*time.Millisecond), noneGotThrough),
				softRoCE(inHardware("completer_retry_err", 5)), "network_delay", Likely,
			},
			{"one of ten given up, and something else", after(slowBy(10, 5*time.Millisecond), failsOne(statusRetryExceeded)), timeouts(1), "packet_loss", Possible},
			{"not quite six in its time", after(slowBy(1, 11*ackTimeout/2), noneGotThrough), timeouts(6), "packet_loss", Possible},
			{"several, fewer than in its time", after(slowBy(1, 8*ackTimeout), noneGotThrough), timeouts(4), "packet_loss", Possible},
			// One packet in ten was lost, and of one request three in a row: seen with soft-RoCE.
			{"one that waits for its fourth timeout, and two of others", stuckFor(4 * ackTimeout), softRoCE(inHardware("completer_retry_err", 5)), "packet_loss", Possible},
			{"one that waits for its second timeout", stuckFor(2 * ackTimeout), softRoCE(inHardware("completer_retry_err", 3)), "packet_loss", Possible},
			{"given up, and no timeout", failing(statusRetryExceeded), mlx5(), "ack_timeout", Possible},
		},
	}
}

func adaptiveTrials() trials {
	adaptive := inHardware("roce_adp_retrans", 10)
	return trials{
		brings: []trial{
			{"on its plateau", slowBy(10, 10*time.Millisecond), mlx5(adaptive), "adaptive_retransmission", Certain},
			{"without a plateau", slowBy(10, 4*time.Millisecond), mlx5(adaptive), "adaptive_retransmission", Likely},
			{"with the timeouts that it counts", slowBy(10, 10*time.Millisecond), mlx5(adaptive, inHardware("local_ack_timeout_err", 10)), "adaptive_retransmission", Certain},
		},
		against: []trial{
			{name: "none", burst: slowBy(10, 10*time.Millisecond), counters: mlx5()},
			{name: "not mlx5", burst: slowBy(10, 10*time.Millisecond), counters: softRoCE()},
		},
		lookalikes: []trial{
			{"packets lost", slowBy(10, 4*time.Millisecond), mlx5(adaptive, inHardware("packet_seq_err", 12)), "packet_loss", Certain},
			{"too few", slowBy(10, 10*time.Millisecond), mlx5(inHardware("roce_adp_retrans", 2)), "adaptive_retransmission", Possible},
			{"10 ms by something else", slowBy(10, 10*time.Millisecond), mlx5(), "network_delay", Likely},
		},
	}
}

func badCableTrials() trials {
	broken := inEthtool("rx_pcs_symbol_err_phy", 40)
	return trials{
		brings: []trial{
			{"errors and gaps", nil, mlx5(broken, inHardware("packet_seq_err", 10)), "bad_cable", Likely},
			{"InfiniBand errors and timeouts", slowBy(5, ackTimeout), mlx5(inPort("symbol_error", 9), inHardware("local_ack_timeout_err", 5)), "bad_cable", Likely},
			{"the link trained again", slowBy(1, 20*time.Millisecond), mlx5(inPort("link_error_recovery", 1)), "bad_cable", Possible},
		},
		against: []trial{
			{name: "no errors", counters: mlx5(inHardware("packet_seq_err", 10))},
			{name: "corrected bits only", counters: mlx5(inEthtool("rx_corrected_bits_phy", 5000))},
			{name: "not counted", counters: softRoCE()},
		},
		lookalikes: []trial{
			{"dropped by a switch", nil, mlx5(inHardware("packet_seq_err", 10)), "packet_loss", Certain},
			{"errors that lost nothing", nil, mlx5(broken), "network_delay", Likely},
			{"fewer errors than losses", nil, mlx5(inEthtool("rx_crc_errors_phy", 1), inHardware("packet_seq_err", 20)), "packet_loss", Certain},
		},
	}
}

// flap takes the port down and up again.
func flap(from, to time.Duration) func(*Burst) {
	return func(b *Burst) {
		b.Events = []verbs.AsyncEvent{
			{Monotonic: b.Start + uint64(from), Type: verbs.AsyncPortError, Device: device, Port: 1},
			{Monotonic: b.Start + uint64(to), Type: verbs.AsyncPortActive, Device: device, Port: 1},
		}
	}
}

func linkDownTrials() trials {
	timeouts := softRoCE(inHardware("completer_retry_err", 5))
	ofOther := func(b *Burst) {
		for i := range b.Events {
			b.Events[i].Port = 2
		}
	}
	return trials{
		brings: []trial{
			{"a flap that was told", after(slowBy(1, 500*time.Millisecond), noneGotThrough, flap(100*time.Millisecond, 400*time.Millisecond)), timeouts, "link_down", Certain},
			{"still down", after(stuckFor(time.Second), flap(0, 100*time.Millisecond), func(b *Burst) { b.Events = b.Events[:1] }), timeouts, "link_down", Certain},
			{
				"counted", after(slowBy(1, 500*time.Millisecond), noneGotThrough),
				mlx5(inEthtool("link_down_events_phy", 1), inHardware("local_ack_timeout_err", 6)), "link_down", Likely,
			},
		},
		against: []trial{
			{name: "no event and no count", burst: slowBy(1, 500*time.Millisecond), counters: softRoCE()},
			{name: "that of another port", burst: after(slowBy(1, 500*time.Millisecond), flap(0, 400*time.Millisecond), ofOther), counters: softRoCE()},
		},
		lookalikes: []trial{
			{"a flap before, and loss", after(slowBy(5, 40*time.Millisecond), flap(-900*time.Millisecond, -800*time.Millisecond)), timeouts, "packet_loss", Certain},
			{"a black hole further on", after(slowBy(1, 500*time.Millisecond), noneGotThrough), softRoCE(inHardware("completer_retry_err", 7)), "ack_timeout", Likely},
			{"a short flap in which a third of the requests were under way", func(b *Burst) {
				b.Slow = append(slow(3, 5*time.Millisecond).Slow, slow(6, 5*time.Millisecond).Slow...)
				for i := range b.Slow[3:] {
					b.Slow[3+i].Posted += uint64(500 * time.Millisecond)
					b.Slow[3+i].Delivered += uint64(500 * time.Millisecond)
				}
				flap(0, 20*time.Millisecond)(b)
			}, softRoCE(), "link_down", Possible},
			{"down since all came through", func(b *Burst) { b.Device.Port = &fabric.Port{Number: 1, State: "DOWN"} }, softRoCE(), "network_delay", Likely},
			{"counted, and nothing was lost", nil, mlx5(inEthtool("link_down_events_phy", 1)), "link_down", Possible},
		},
	}
}
