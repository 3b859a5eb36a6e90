package fabric

// aerCounters are the sums over the kinds of errors, from
// Documentation/ABI/testing/sysfs-bus-pci-devices-aer of the kernel.
func aerCounters() []Counter {
	return from(SourceAER, []Counter{
		{
			Name: "aer_dev_correctable", Metric: MetricPCIeErrors, Unit: "{error}",
			Meaning: "Errors of the PCIe link that were corrected by sending again.",
		},
		{
			Name: "aer_dev_nonfatal", Metric: MetricPCIeErrors, Unit: "{error}",
			Meaning: "Errors on PCIe that lost a transaction.",
		},
		{
			Name: "aer_dev_fatal", Metric: MetricPCIeErrors, Unit: "{error}",
			Meaning: "Errors on PCIe after which the link cannot be trusted.",
		},
	})
}
