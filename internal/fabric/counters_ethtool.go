package fabric

// ethtoolCounters are those of mlx5. Names and meanings from
// Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst of
// the kernel; the counters of PCIe have 32 bits (mpcnt_reg).
func ethtoolCounters() []Counter {
	return from(SourceEthtool, []Counter{
		{
			Name: "rx_discards_phy", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "Packets dropped for want of buffers in the NIC: the host or PCIe is too slow.",
		},
		{
			Name: "tx_discards_phy", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionTransmit,
			Meaning: "Packets not sent: link down, head of line, or paused for long.",
		},
		{
			Name: "rx_prio[p]_buf_discard", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "Packets of a priority dropped for want of buffers of this host.",
		},
		{
			Name: "rx_prio[p]_cong_discard", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "Packets of a priority dropped because of congestion of this host.",
		},
		{
			Name: "rx_prio[p]_discards", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "Packets of a priority dropped for want of buffers.",
		},
		{
			Name: "outbound_pci_buffer_overflow", Metric: MetricPortDiscards, Unit: "{packet}", Direction: DirectionReceive,
			Meaning: "Packets dropped because they came faster than PCIe took them.",
		},
		{
			Name: "rx_crc_errors_phy", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Packets received with a wrong checksum (FCS).",
		},
		{
			Name: "rx_symbol_err_phy", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Packets received with an error in the physical coding.",
		},
		{
			Name: "rx_pcs_symbol_err_phy", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Symbol errors that error correction did not mend: traffic was lost.",
		},
		{
			Name: "rx_err_lane_[l]_phy", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Errors of a lane before error correction.",
		},
		{
			Name: "module_bus_stuck", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Times that the bus of the cable or transceiver was stuck.",
		},
		{
			Name: "module_high_temp", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Times that the cable or transceiver was too hot.",
		},
		{
			Name: "module_bad_shorted", Metric: MetricPortErrors, Unit: "{error}",
			Meaning: "Times that the cable was found shorted.",
		},
		{
			Name: "rx_corrected_bits_phy", Metric: MetricPortCorrectedBits, Unit: "{bit}",
			Meaning: "Bits that error correction mended. Some are normal; a rise is a bad cable or transceiver.",
		},
		{
			Name: "link_down_events_phy", Metric: MetricPortLinkDowns, Unit: "{event}",
			Meaning: "Times that the link went down.",
		},
		{
			Name: "rx_prio[p]_pause", Metric: MetricPortPauseFrames, Unit: "{frame}", Direction: DirectionReceive,
			Meaning: "Pause frames received for a priority (PFC): the network cannot take what this host sends.",
		},
		{
			Name: "tx_prio[p]_pause", Metric: MetricPortPauseFrames, Unit: "{frame}", Direction: DirectionTransmit,
			Meaning: "Pause frames sent for a priority (PFC): this host cannot take what the network brings.",
		},
		{
			Name: "rx_global_pause", Metric: MetricPortPauseFrames, Unit: "{frame}", Direction: DirectionReceive,
			Meaning: "Pause frames received for the whole link.",
		},
		{
			Name: "tx_global_pause", Metric: MetricPortPauseFrames, Unit: "{frame}", Direction: DirectionTransmit,
			Meaning: "Pause frames sent for the whole link.",
		},
		{
			Name: "rx_prio[p]_pause_duration", Metric: MetricPortPauseTime, Unit: "s", Scale: 1e-6, Direction: DirectionReceive,
			Meaning: "Time that a priority was not sent because of received pause frames.",
		},
		{
			Name: "tx_prio[p]_pause_duration", Metric: MetricPortPauseTime, Unit: "s", Scale: 1e-6, Direction: DirectionTransmit,
			Meaning: "Time that the peer was asked not to send a priority.",
		},
		{
			Name: "rx_global_pause_duration", Metric: MetricPortPauseTime, Unit: "s", Scale: 1e-6, Direction: DirectionReceive,
			Meaning: "Time that nothing was sent because of received pause frames.",
		},
		{
			Name: "tx_global_pause_duration", Metric: MetricPortPauseTime, Unit: "s", Scale: 1e-6, Direction: DirectionTransmit,
			Meaning: "Time that the peer was asked not to send.",
		},
		{
			Name: "tx_pause_storm_warning_events", Metric: MetricPortPauseStorms, Unit: "{event}",
			Meaning: "Times that this host sent pauses for long.",
		},
		{
			Name: "tx_pause_storm_error_events", Metric: MetricPortPauseStorms, Unit: "{event}",
			Meaning: "Times that this host sent pauses for so long that the NIC stopped sending them; packets may have been lost.",
		},
		{
			Name: "rx_pci_signal_integrity", Metric: MetricPCIeErrors, Unit: "{error}", Wraps: 32,
			Meaning: "Errors of the PCIe link that the NIC found: slot or board.",
		},
		{
			Name: "tx_pci_signal_integrity", Metric: MetricPCIeErrors, Unit: "{error}", Wraps: 32,
			Meaning: "Errors of the PCIe link that the other side found: slot or board.",
		},
		{
			Name: "outbound_pci_stalled_rd", Metric: MetricPCIeStalled, Unit: "1", Scale: 0.01, Momentary: true,
			Meaning: "Part of the last second in which reads of the NIC waited for credits of PCIe.",
		},
		{
			Name: "outbound_pci_stalled_wr", Metric: MetricPCIeStalled, Unit: "1", Scale: 0.01, Momentary: true,
			Meaning: "Part of the last second in which writes of the NIC waited for credits of PCIe.",
		},
		{
			Name: "outbound_pci_stalled_rd_events", Metric: MetricPCIeStallTime, Unit: "s", Wraps: 32,
			Meaning: "Seconds in which reads of the NIC waited for credits more than 30 % of the time.",
		},
		{
			Name: "outbound_pci_stalled_wr_events", Metric: MetricPCIeStallTime, Unit: "s", Wraps: 32,
			Meaning: "Seconds in which writes of the NIC waited for credits more than 30 % of the time.",
		},
	})
}
