package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// otherTrials are those of causes about ports and paths.
func otherTrials() map[string]trials {
	return map[string]trials{"port_imbalance": imbalanceTrials(), "network_delay": delayTrials()}
}

// twoPorts gives the device two ports of 100 Gb/s that sent these parts of what
// they can in the second.
func twoPorts(first, second float64) func(*Burst) {
	return func(b *Burst) {
		for number := 1; number <= 2; number++ {
			b.Device.Ports = append(b.Device.Ports, fabric.Port{Number: number, State: "ACTIVE", RateBitsPerSecond: 100e9})
		}
		b.Device.Port = &b.Device.Ports[0]
		b.Counters.Sent = map[int]float64{1: first * 12.5e9, 2: second * 12.5e9}
		b.Neighbours = Neighbours{Active: 8, Slow: 4}
	}
}

func imbalanceTrials() trials {
	allSlow := func(b *Burst) { b.Neighbours.Slow = b.Neighbours.Active }
	return trials{
		brings: []trial{
			{"one full, one idle", twoPorts(0.95, 0.1), mlx5(), "port_imbalance", Likely},
		},
		against: []trial{
			{name: "both full", burst: twoPorts(0.95, 0.9), counters: mlx5()},
			{name: "none full", burst: twoPorts(0.4, 0.1), counters: mlx5()},
			{name: "one port", counters: mlx5()},
			{name: "not counted", burst: after(twoPorts(1, 0), func(b *Burst) { b.Counters.Sent = nil }), counters: mlx5()},
		},
		lookalikes: []trial{
			{"all are slow, on both ports", after(twoPorts(0.95, 0.1), allSlow), mlx5(), "port_imbalance", Possible},
			{"loss on the busier port", twoPorts(0.5, 0.1), mlx5(inHardware("packet_seq_err", 20)), "packet_loss", Likely},
			{"paused on the full port", after(twoPorts(0.85, 0.1), allSlow), mlx5(paused("rx_prio[p]_pause", 50000)), "pfc_received", Likely},
		},
	}
}

// runsOf has so many requests complete with each slow one, and with each of those
// that were normal.
func runsOf(requests uint32, usual float64) func(*Burst) {
	return func(b *Burst) {
		b.Baseline.Requests = usual
		each(b, func(r *verbs.Completion) { r.Requests, r.Threshold = requests, time.Millisecond })
	}
}

func delayTrials() trials {
	ofNIC := func(layer string) func(*Burst) {
		return func(b *Burst) {
			b.Device.PCIAddress, b.Device.Port = "0000:18:00.0", &fabric.Port{Number: 1, State: "ACTIVE", LinkLayer: layer}
		}
	}
	transportOnly := counts{fabric.SourceHardware: mlx5()[fabric.SourceHardware]}
	noScheduling := func(b *Burst) { each(b, func(r *verbs.Completion) { r.HasPollerScheduling = false }) }
	halfAway := func(b *Burst) { each(b, func(r *verbs.Completion) { r.PollerScheduling.Runnable = r.Duration() / 2 }) }
	busySibling := Neighbours{Active: 9, Slow: 2, ActiveOfPeer: 1, SlowOfPeer: 1, ActiveOfCQ: 8, SlowOfCQ: 1}
	return trials{
		brings: []trial{
			{"a longer path", nil, softRoCE(), "network_delay", Likely},
			{"all to one peer", neighbours(Neighbours{Active: 9, Slow: 3, ActiveOfPeer: 3, SlowOfPeer: 3}), mlx5(), "network_delay", Likely},
			{"the first of a batch was late, the others behind it", func(b *Burst) {
				for i := range b.Slow {
					if i%5 != 0 {
						moveTime(&b.Slow[i], verbs.StageDevice, verbs.StageQueue)
					}
				}
			}, softRoCE(), "network_delay", Likely},
			{"other queue pairs of the Completion Queue were polled", after(unseen, neighbours(busySibling)), softRoCE(), "network_delay", Likely},
			{"some requests were seen", after(unseen, func(b *Burst) { copy(b.Slow, slow(3, 5*time.Millisecond).Slow) }), softRoCE(), "network_delay", Likely},
			{"few requests were seen, and polls found nothing for a part of the time", after(unseen, func(b *Burst) { copy(b.Slow, slow(2, 5*time.Millisecond).Slow); b.Slow = b.Slow[:5] }), softRoCE(), "network_delay", Possible},
			{"runs as long as before", runsOf(64, 64), softRoCE(), "network_delay", Likely},
			{"longer runs than before", runsOf(64, 4), softRoCE(), "network_delay", Possible},
			{"the poller slept until it was told", told(WaitEvent), softRoCE(), "network_delay", Possible},
			{"the poller slept, and no sleep of its own choice was found", atSite(0.2), softRoCE(), "network_delay", Possible},
			{"the poller slept, and the returns of some posts were seen", after(atSite(0.2), func(b *Burst) {
				for i := range len(b.Slow) / 2 {
					r := &b.Slow[i]
					moveTime(r, verbs.StageSubmit, verbs.StagePost)
					r.Known = 1<<verbs.StagePost | 1<<verbs.StageQueue | 1<<verbs.StageCompletion
				}
			}), softRoCE(), "network_delay", Possible},
			{"counters not read", nil, nil, "network_delay", Possible},
			{"timeouts are not counted", nil, add(counts{}, inHardware("packet_seq_err", 0), inHardware("rnr_nak_retry_err", 0)), "network_delay", Possible},
			{"pauses of an Ethernet NIC are not counted", ofNIC(fabric.LinkLayerEthernet), transportOnly, "network_delay", Possible},
			{"pauses of an Ethernet NIC are counted", ofNIC(fabric.LinkLayerEthernet), mlx5(), "network_delay", Likely},
			{"credits of an InfiniBand NIC are not counted", ofNIC(fabric.LinkLayerInfiniBand), transportOnly, "network_delay", Possible},
			{"the poller's scheduling is not known", noScheduling, softRoCE(), "network_delay", Possible},
			{"the poller was away for half of it, and looked", halfAway, softRoCE(), "network_delay", Possible},
			{"all of it behind earlier work", behindOthers, softRoCE(), "network_delay", Possible},
			{"only one of several queue pairs to the peer", neighbours(Neighbours{Active: 9, Slow: 1, ActiveOfPeer: 8}), softRoCE(), "network_delay", Possible},
		},
		against: []trial{
			{name: "the poller was off its CPU", burst: func(b *Burst) { each(b, pollerAway) }, counters: softRoCE()},
			{name: "on its CPU, and perhaps not looking", burst: unseen, counters: softRoCE()},
			{name: "the poller slept, and was awake for long", burst: atSite(0.4), counters: softRoCE()},
			{name: "the poller slept, where the returns of all posts are seen", burst: after(atSite(0.2), func(b *Burst) {
				each(b, func(r *verbs.Completion) {
					r.Known = 1<<verbs.StagePost | 1<<verbs.StageQueue | 1<<verbs.StageCompletion
				})
			}), counters: softRoCE()},
			{name: "the poller slept for a time of its own choice", burst: told(WaitTimer), counters: softRoCE()},
			{name: "the poller slept, nobody knows what for", burst: told(WaitUnknown), counters: softRoCE()},
			{name: "the poller waits for events and was late all the same", burst: func(b *Burst) {
				told(WaitEvent)(b)
				each(b, func(r *verbs.Completion) {
					r.PollerScheduling = verbs.Scheduling{Runnable: r.Duration() * 95 / 100, Whole: true}
				})
			}, counters: softRoCE()},
			{name: "where polls were watched they found completions late", burst: after(unseen, func(b *Burst) {
				copy(b.Slow, slow(3, 5*time.Millisecond).Slow)
				for i := range 3 {
					moveTime(&b.Slow[i], verbs.StageDevice, verbs.StagePoll)
				}
			}), counters: softRoCE()},
			{name: "nothing came through", burst: stuckFor(time.Second), counters: softRoCE()},
			{name: "failed for another reason", burst: failing(10), counters: softRoCE()},
		},
		lookalikes: []trial{
			{"loss", slowBy(6, 40*time.Millisecond), softRoCE(inHardware("completer_retry_err", 6)), "packet_loss", Certain},
			{"loss, and the poller slept until it was told", told(WaitEvent), mlx5(inHardware("packet_seq_err", 10)), "packet_loss", Likely},
			{"loss, and no sleep of the poller's own choice was found", atSite(0.2), mlx5(inHardware("packet_seq_err", 10)), "packet_loss", Likely},
			{"the receiver is not ready", nil, softRoCE(inHardware("rcvd_rnr_err", 10)), "receiver_not_ready", Likely},
			{"loss, when nothing was seen of the polls", unseen, mlx5(inHardware("packet_seq_err", 10)), "packet_loss", Likely},
			{"pauses", nil, mlx5(paused("rx_prio[p]_pause", 45000)), "pfc_received", Likely},
		},
	}
}
