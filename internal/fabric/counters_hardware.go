package fabric

// hardwareCounters are those of the drivers: mlx5 where nothing else is said.
// Names from drivers/infiniband/hw/mlx5/counters.c, sw/rxe/rxe_hw_counters.c and
// hw/efa/efa_verbs.c of the kernel. The queue counters of mlx5 have 32 bits and
// wrap (query_q_counter_out).
func hardwareCounters() []Counter {
	return from(SourceHardware, []Counter{
		{
			Name: "local_ack_timeout_err", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Acknowledgements that did not come in time: loss, a black hole or a flap.",
		},
		{
			Name: "packet_seq_err", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Negative acknowledgements for a sequence error: the path lost packets of ours.",
		},
		{
			Name: "implied_nak_seq_err", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Acknowledgements that skipped a read or an atomic: a response was lost.",
		},
		{
			Name: "out_of_sequence", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Packets received out of sequence: loss, or adaptive routing.",
		},
		{
			Name: "duplicate_request", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Requests received again: the peer sent them a second time.",
		},
		{
			Name: "rnr_nak_retry_err", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Receiver not ready: the peer had posted no receive.",
		},
		{
			Name: "out_of_buffer", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Packets dropped because this host had posted no receive.",
		},
		{
			Name: "req_rnr_retries_exceeded", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Requests given up after too many times of receiver not ready.",
		},
		{
			Name: "req_transport_retries_exceeded", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Requests given up after too many retransmissions.",
		},
		{
			Name: "roce_adp_retrans", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Adaptive retransmissions of RoCE.",
		},
		{
			Name: "roce_adp_retrans_to", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Timeouts of adaptive retransmission of RoCE.",
		},
		{
			Name: "roce_slow_restart", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Slow restarts of RoCE.",
		},
		{
			Name: "roce_slow_restart_cnps", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Congestion notifications that slow restart made.",
		},
		{
			Name: "roce_slow_restart_trans", Metric: MetricPortTransport, Unit: "{event}", Wraps: 32,
			Meaning: "Changes of state to slow restart.",
		},
		{
			Name: "out_of_seq_request", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "soft-RoCE: requests received out of sequence.",
		},
		{
			Name: "rcvd_rnr_err", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "soft-RoCE: receiver not ready, from the peer.",
		},
		{
			Name: "send_rnr_err", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "soft-RoCE: receiver not ready, sent because this host had posted no receive.",
		},
		{
			Name: "rcvd_seq_err", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "soft-RoCE: negative acknowledgements for a sequence error.",
		},
		{
			Name: "retry_exceeded_err", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "soft-RoCE: requests given up after too many retransmissions.",
		},
		{
			Name: "retry_rnr_exceeded_err", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "soft-RoCE: requests given up after too many times of receiver not ready.",
		},
		{
			Name: "completer_retry_err", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "soft-RoCE: retransmissions.",
		},
		{
			Name: "retrans_pkts", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "EFA: packets sent again.",
		},
		{
			Name: "retrans_timeout_events", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "EFA: packets sent again after a timeout.",
		},
		{
			Name: "unresponsive_remote_events", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "EFA: peers that did not answer.",
		},
		{
			Name: "impaired_remote_conn_events", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "EFA: connections that were impaired.",
		},
		{
			Name: "req_cqe_error", Metric: MetricPortRequestErrors, Unit: "{error}", Wraps: 32,
			Meaning: "Requests of this host that completed with an error.",
		},
		{
			Name: "req_cqe_flush_error", Metric: MetricPortRequestErrors, Unit: "{error}", Wraps: 32,
			Meaning: "Requests of this host flushed from a queue in the error state.",
		},
		{
			Name: "req_remote_access_errors", Metric: MetricPortRequestErrors, Unit: "{error}", Wraps: 32,
			Meaning: "Requests of this host that the peer refused: memory not registered, or not for that.",
		},
		{
			Name: "req_remote_invalid_request", Metric: MetricPortRequestErrors, Unit: "{error}", Wraps: 32,
			Meaning: "Requests of this host that the peer found invalid.",
		},
		{
			Name: "resp_cqe_error", Metric: MetricPortRequestErrors, Unit: "{error}", Wraps: 32,
			Meaning: "Receives that completed with an error.",
		},
		{
			Name: "resp_cqe_flush_error", Metric: MetricPortRequestErrors, Unit: "{error}", Wraps: 32,
			Meaning: "Receives flushed from a queue in the error state.",
		},
		{
			Name: "resp_local_length_error", Metric: MetricPortRequestErrors, Unit: "{error}", Wraps: 32,
			Meaning: "Messages longer than the receive posted for them.",
		},
		{
			Name: "resp_remote_access_errors", Metric: MetricPortRequestErrors, Unit: "{error}", Wraps: 32,
			Meaning: "Requests of a peer to memory that it may not access.",
		},
		{
			Name: "send_err", Metric: MetricPortRequestErrors, Unit: "{error}",
			Meaning: "soft-RoCE: packets that could not be sent.",
		},
		{
			Name: "rdma_read_wr_err", Metric: MetricPortRequestErrors, Unit: "{error}",
			Meaning: "EFA: reads that failed.",
		},
		{
			Name: "rdma_write_wr_err", Metric: MetricPortRequestErrors, Unit: "{error}",
			Meaning: "EFA: writes that failed.",
		},
		{
			Name: "rx_write_requests", Metric: MetricPortRequests, Unit: "{request}", Wraps: 32,
			Meaning: "Writes of peers to this host.",
		},
		{
			Name: "rx_read_requests", Metric: MetricPortRequests, Unit: "{request}", Wraps: 32,
			Meaning: "Reads of peers from this host.",
		},
		{
			Name: "rx_atomic_requests", Metric: MetricPortRequests, Unit: "{request}", Wraps: 32,
			Meaning: "Atomics of peers on this host.",
		},
		{
			Name: "rx_dct_connect", Metric: MetricPortRequests, Unit: "{request}", Wraps: 32,
			Meaning: "Connection requests to dynamically connected targets.",
		},
		{
			Name: "np_ecn_marked_roce_packets", Metric: MetricPortCongestion, Unit: "{packet}",
			Meaning: "Packets received that a switch marked as congested.",
		},
		{
			Name: "np_cnp_sent", Metric: MetricPortCongestion, Unit: "{packet}",
			Meaning: "Congestion notifications sent to the senders of such packets.",
		},
		{
			Name: "rp_cnp_handled", Metric: MetricPortCongestion, Unit: "{packet}",
			Meaning: "Congestion notifications received that slowed down a queue of this host.",
		},
		{
			Name: "rp_cnp_ignored", Metric: MetricPortCongestion, Unit: "{packet}",
			Meaning: "Congestion notifications received and ignored.",
		},
		{
			Name: "rx_icrc_encapsulated", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "RoCE packets received with a wrong checksum (ICRC).",
		},
		{
			Name: "link_downed", Metric: MetricPortLinkDowns, Unit: "{event}",
			Meaning: "soft-RoCE: times that the interface went down.",
		},
		{
			Name: "sent_pkts", Metric: MetricPortPackets, Unit: "{packet}", Direction: DirectionTransmit,
			Meaning: "soft-RoCE: packets sent.",
		},
		{
			Name: "rcvd_pkts", Metric: MetricPortPackets, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "soft-RoCE: packets received.",
		},
		{
			Name: "tx_bytes", Metric: MetricPortIO, Unit: "By", Direction: DirectionTransmit,
			Meaning: "EFA, bnxt_re: bytes sent.",
		},
		{
			Name: "rx_bytes", Metric: MetricPortIO, Unit: "By", Direction: DirectionReceive,
			Meaning: "EFA, bnxt_re: bytes received.",
		},
		{
			Name: "tx_pkts", Metric: MetricPortPackets, Unit: "{packet}", Direction: DirectionTransmit,
			Meaning: "EFA, bnxt_re: packets sent.",
		},
		{
			Name: "rx_pkts", Metric: MetricPortPackets, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "EFA, bnxt_re: packets received.",
		},
		{
			Name: "rx_drops", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "EFA: packets received and dropped.",
		},
	})
}
