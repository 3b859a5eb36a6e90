package fabric

// otherCounters are those of bnxt_re and irdma, which newer versions of bnxt_re
// call as mlx5 does. Names from drivers/infiniband/hw/bnxt_re/hw_counters.c and
// hw/irdma/verbs.c of the kernel; the drivers add them up in 64 bits.
func otherCounters() []Counter {
	return from(SourceHardware, []Counter{
		{
			Name: "to_retransmits", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "bnxt_re: acknowledgements that did not come in time.",
		},
		{
			Name: "seq_err_naks_rcvd", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "bnxt_re: negative acknowledgements for a sequence error.",
		},
		{
			Name: "missing_resp", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "bnxt_re: acknowledgements that skipped a response.",
		},
		{
			Name: "rnr_naks_rcvd", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "bnxt_re: receiver not ready, from the peer.",
		},
		{
			Name: "max_retry_exceeded", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "bnxt_re: requests given up after too many retransmissions.",
		},
		{
			Name: "dup_req", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "bnxt_re: requests received again.",
		},
		{
			Name: "rx_out_of_buffer", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "bnxt_re: packets dropped because this host had posted no receive.",
		},
		{
			Name: "tcpRetransSegs", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "irdma: segments sent again; the name in older kernels.",
		},
		{
			Name: "RetransSegs", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "irdma: segments sent again.",
		},
		{
			Name: "RTO", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "irdma: retransmission timeouts.",
		},
		{
			Name: "RNR sent", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "irdma: receiver not ready, sent because this host had posted no receive.",
		},
		{
			Name: "RNR received", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "irdma: receiver not ready, from the peer.",
		},
		{
			Name: "Nak Sequence Error", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "irdma: negative acknowledgements for a sequence error.",
		},
		{
			Name: "Nak Sequence Error Implied", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "irdma: acknowledgements that skipped a response.",
		},
		{
			Name: "Rcvd Out of order packets", Metric: MetricPortTransport, Unit: "{event}",
			Meaning: "irdma: packets received out of sequence.",
		},
		{
			Name: "remote_invalid_req_err", Metric: MetricPortRequestErrors, Unit: "{error}",
			Meaning: "bnxt_re: requests of this host that the peer found invalid.",
		},
		{
			Name: "remote_access_err", Metric: MetricPortRequestErrors, Unit: "{error}",
			Meaning: "bnxt_re: requests of this host that the peer refused.",
		},
		{
			Name: "res_length_mismatch", Metric: MetricPortRequestErrors, Unit: "{error}",
			Meaning: "bnxt_re: messages longer than the receive posted for them.",
		},
		{
			Name: "rx_ecn_marked_pkts", Metric: MetricPortCongestion, Unit: "{packet}",
			Meaning: "bnxt_re: packets received that a switch marked as congested.",
		},
		{
			Name: "tx_cnp_pkts", Metric: MetricPortCongestion, Unit: "{packet}",
			Meaning: "bnxt_re: congestion notifications sent.",
		},
		{
			Name: "rx_cnp_pkts", Metric: MetricPortCongestion, Unit: "{packet}",
			Meaning: "bnxt_re: congestion notifications received.",
		},
		{
			Name: "RxECNMrkd", Metric: MetricPortCongestion, Unit: "{packet}",
			Meaning: "irdma: packets received that a switch marked as congested.",
		},
		{
			Name: "cnpSent", Metric: MetricPortCongestion, Unit: "{packet}",
			Meaning: "irdma: congestion notifications sent.",
		},
		{
			Name: "cnpHandled", Metric: MetricPortCongestion, Unit: "{packet}",
			Meaning: "irdma: congestion notifications received that slowed down a queue of this host.",
		},
		{
			Name: "cnpIgnored", Metric: MetricPortCongestion, Unit: "{packet}",
			Meaning: "irdma: congestion notifications received and ignored.",
		},
		{
			Name: "rx_roce_errors", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "bnxt_re: RoCE packets received with an error.",
		},
		{
			Name: "tx_roce_errors", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "bnxt_re: RoCE packets not sent because of an error.",
		},
		{
			Name: "CRC errors", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "irdma: RoCE packets received with a wrong checksum (ICRC).",
		},
		{
			Name: "rx_roce_discards", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "bnxt_re: RoCE packets received and dropped.",
		},
		{
			Name: "tx_roce_discards", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionTransmit,
			Meaning: "bnxt_re: RoCE packets not sent.",
		},
	})
}
