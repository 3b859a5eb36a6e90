package fabric

// portCounters are those of the InfiniBand Architecture Specification, as
// Documentation/ABI/stable/sysfs-class-infiniband of the kernel explains them.
func portCounters() []Counter {
	return from(SourcePort, []Counter{
		{
			Name: "port_xmit_data", Metric: MetricPortIO, Unit: "By", Scale: 4, Direction: DirectionTransmit,
			Meaning: "Bytes sent, headers included. The kernel counts words of four bytes.",
		},
		{
			Name: "port_rcv_data", Metric: MetricPortIO, Unit: "By", Scale: 4, Direction: DirectionReceive,
			Meaning: "Bytes received, headers included. The kernel counts words of four bytes.",
		},
		{
			Name: "port_xmit_packets", Metric: MetricPortPackets, Unit: "{packet}", Direction: DirectionTransmit,
			Meaning: "Packets sent.",
		},
		{
			Name: "port_rcv_packets", Metric: MetricPortPackets, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "Packets received, those with errors included.",
		},
		{
			Name: "port_xmit_discards", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionTransmit,
			Meaning: "Packets not sent because the port was down or congested.",
		},
		{
			Name: "VL15_dropped", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "Management packets dropped for want of buffers.",
		},
		{
			Name: "port_xmit_constraint_errors", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionTransmit,
			Meaning: "Packets not sent because partition or raw filtering forbids it.",
		},
		{
			Name: "port_rcv_constraint_errors", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "Packets dropped because partition or raw filtering forbids them.",
		},
		{
			Name: "port_rcv_switch_relay_errors", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "Packets that a switch port could not forward.",
		},
		{
			Name: "symbol_error", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Minor errors of the link, on any lane: cable, optics or port.",
		},
		{
			Name: "link_error_recovery", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Times that the link trained again and recovered.",
		},
		{
			Name: "port_rcv_errors", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Packets received with an error.",
		},
		{
			Name: "port_rcv_remote_physical_errors", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Packets received that an earlier hop marked as bad.",
		},
		{
			Name: "local_link_integrity_errors", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Times that local physical errors exceeded their threshold.",
		},
		{
			Name: "excessive_buffer_overrun_errors", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Times that input buffers overran: flow control is wrong.",
		},
		{
			Name: "link_downed", Metric: MetricPortLinkDowns, Unit: "{event}",
			Meaning: "Times that the link failed to recover and went down.",
		},
		{
			Name: "port_xmit_wait", Metric: MetricPortTransmitWait, Unit: "{tick}",
			Meaning: "Ticks in which there was something to send and none went: no credits from the next hop, or arbitration.",
		},
	})
}
