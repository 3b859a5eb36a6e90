package rdmareceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// emitStates emits what devices and ports are at the moment.
func (d *deviceEmitter) emitStates(into pmetric.MetricSlice, devices []fabric.DeviceState, now pcommon.Timestamp) {
	for _, device := range devices {
		d.builder.RecordRdmaDeviceInfoDataPoint(now, 1, device.Name, deviceOptions(device)...)
		d.recordPCIe(device, now)
		for _, port := range device.Ports {
			d.recordPort(device.Name, port, now)
		}
	}
	d.take(into, d.started)
}

func (d *deviceEmitter) recordPCIe(device fabric.DeviceState, now pcommon.Timestamp) {
	if device.PCI == nil {
		return
	}
	if rate, ok := device.PCI.BandwidthBytesPerSecond(); ok {
		d.builder.RecordRdmaDevicePcieBandwidthNegotiatedDataPoint(now, rate, device.Name)
	}
	if rate, ok := device.PCI.LimitBytesPerSecond(); ok {
		d.builder.RecordRdmaDevicePcieBandwidthLimitDataPoint(now, rate, device.Name)
	}
}

func (d *deviceEmitter) recordPort(device string, port fabric.Port, now pcommon.Timestamp) {
	number := metadata.WithRdmaDevicePortMetricAttribute(int64(port.Number))
	if port.RateBitsPerSecond > 0 {
		d.builder.RecordRdmaPortBandwidthLimitDataPoint(now, port.RateBitsPerSecond/8, device, number)
	}
	if port.State == "" {
		return
	}
	var up int64
	if port.Active() {
		up = 1
	}
	of := []metadata.MetricAttributeOption{number, metadata.WithRdmaPortStateMetricAttribute(port.State)}
	of = appendKnown(of, metadata.WithRdmaPortLinkLayerMetricAttribute, port.LinkLayer)
	of = appendKnown(of, metadata.WithNetworkInterfaceNameMetricAttribute, port.NetDev)
	d.builder.RecordRdmaPortUpDataPoint(now, up, device, of...)
}

// deviceOptions are the attributes of a device that are known.
func deviceOptions(device fabric.DeviceState) []metadata.MetricAttributeOption {
	var of []metadata.MetricAttributeOption
	of = appendKnown(of, metadata.WithRdmaDeviceFirmwareVersionMetricAttribute, device.Firmware)
	of = appendKnown(of, metadata.WithRdmaDevicePciAddressMetricAttribute, device.PCIAddress)
	if device.NUMANode != nil {
		of = append(of, metadata.WithRdmaDeviceNumaNodeMetricAttribute(int64(*device.NUMANode)))
	}
	if device.Bond != nil {
		of = append(of, metadata.WithRdmaDeviceBondMetricAttribute(device.Bond.NetDev))
	}
	if device.PCI == nil {
		return of
	}
	return appendPCI(of, device.PCI)
}

func appendPCI(of []metadata.MetricAttributeOption, pci *fabric.PCIDevice) []metadata.MetricAttributeOption {
	of = appendKnown(of, metadata.WithRdmaDeviceIommuModeMetricAttribute, string(pci.IOMMU))
	of = appendKnown(of, metadata.WithRdmaDevicePciPhysicalFunctionMetricAttribute, pci.PhysicalFunction)
	if control := pci.Control; control != nil {
		of = append(of, metadata.WithRdmaDevicePciRelaxedOrderingMetricAttribute(control.RelaxedOrdering))
		if control.MaxReadRequest > 0 {
			of = append(of, metadata.WithRdmaDevicePciMaxReadRequestMetricAttribute(int64(control.MaxReadRequest)))
		}
	}
	if redirects, known := pci.ACSRedirects(); known {
		of = append(of, metadata.WithRdmaDevicePciAcsRedirectMetricAttribute(redirects))
	}
	return of
}

// appendKnown appends an attribute, unless its value is not known.
func appendKnown(to []metadata.MetricAttributeOption, option func(string) metadata.MetricAttributeOption, value string) []metadata.MetricAttributeOption {
	if value == "" {
		return to
	}
	return append(to, option(value))
}
