package fabric

// portCounters are those of the InfiniBand Architecture Specification, as
// Documentation/ABI/stable/sysfs-class-infiniband of the kernel explains them. Their
// widths are those of PORT_PMA_ATTR in drivers/infiniband/core/sysfs.c; the ones of bytes
// and packets have 64 bits where the device has extended counters.
func portCounters() []Counter {
	return from(SourcePort, []Counter{
		{
			Name: "port_xmit_data", Metric: MetricPortIO, Unit: "By", Stays: 32, Scale: 4, Direction: DirectionTransmit,
			Meaning: "Bytes sent, headers included. The kernel counts words of four bytes.",
		},
		{
			Name: "port_rcv_data", Metric: MetricPortIO, Unit: "By", Stays: 32, Scale: 4, Direction: DirectionReceive,
			Meaning: "Bytes received, headers included. The kernel counts words of four bytes.",
		},
		{
			Name: "port_xmit_packets", Metric: MetricPortPackets, Unit: "{packet}", Stays: 32, Direction: DirectionTransmit,
			Meaning: "Packets sent.",
		},
		{
			Name: "port_rcv_packets", Metric: MetricPortPackets, Unit: "{packet}", Stays: 32, Direction: DirectionReceive,
			Meaning: "Packets received, those with errors included.",
		},
		{
			Name: "port_xmit_discards", Metric: MetricPortDiscards, Unit: "{packet}", Stays: 16, Direction: DirectionTransmit,
			Meaning: "Packets not sent because the port was down or congested.",
		},
		{
			Name: "VL15_dropped", Metric: MetricPortDiscards, Unit: "{packet}", Stays: 16, Direction: DirectionReceive,
			Meaning: "Management packets dropped for want of buffers.",
		},
		{
			Name: "port_xmit_constraint_errors", Metric: MetricPortDiscards, Unit: "{packet}", Stays: 8, Direction: DirectionTransmit,
			Meaning: "Packets not sent because partition or raw filtering forbids it.",
		},
		{
			Name: "port_rcv_constraint_errors", Metric: MetricPortDiscards, Unit: "{packet}", Stays: 8, Direction: DirectionReceive,
			Meaning: "Packets dropped because partition or raw filtering forbids them.",
		},
		{
			Name: "port_rcv_switch_relay_errors", Metric: MetricPortDiscards, Unit: "{packet}", Stays: 16, Direction: DirectionReceive,
			Meaning: "Packets that a switch port could not forward.",
		},
		{
			Name: "symbol_error", Metric: MetricPortErrors, Unit: "{error}", Stays: 16,
			Meaning: "Minor errors of the link, on any lane: cable, optics or port.",
		},
		{
			Name: "link_error_recovery", Metric: MetricPortErrors, Unit: "{error}", Stays: 8,
			Meaning: "Times that the link trained again and recovered.",
		},
		{
			Name: "port_rcv_errors", Metric: MetricPortErrors, Unit: "{error}", Stays: 16,
			Meaning: "Packets received with an error.",
		},
		{
			Name: "port_rcv_remote_physical_errors", Metric: MetricPortErrors, Unit: "{error}", Stays: 16,
			Meaning: "Packets received that an earlier hop marked as bad.",
		},
		{
			Name: "local_link_integrity_errors", Metric: MetricPortErrors, Unit: "{error}", Stays: 4,
			Meaning: "Times that local physical errors exceeded their threshold.",
		},
		{
			Name: "excessive_buffer_overrun_errors", Metric: MetricPortErrors, Unit: "{error}", Stays: 4,
			Meaning: "Times that input buffers overran: flow control is wrong.",
		},
		{
			Name: "link_downed", Metric: MetricPortLinkDowns, Unit: "{event}", Stays: 8,
			Meaning: "Times that the link failed to recover and went down.",
		},
		{
			Name: "port_xmit_wait", Metric: MetricPortTransmitWait, Unit: "{tick}", Stays: 32,
			Meaning: "Ticks in which there was something to send and none went: no credits from the next hop, or arbitration.",
		},
	})
}
