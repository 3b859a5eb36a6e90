package fabric

import "errors"

// Inventory is all that sysfs tells of RDMA on a machine, and of the GPUs beside
// it.
type Inventory struct {
	Devices []DeviceDetail
	// GPUs are NVIDIA's.
	GPUs []PCIDevice
}

// DeviceDetail is a device with what is not read together with all devices.
type DeviceDetail struct {
	Device
	// PCI is nil for a device without a PCI function.
	PCI *PCIDevice
	// GIDs has the addresses of each port.
	GIDs map[int][]GID
	// GPUs has the relation to each GPU, by its PCI address.
	GPUs map[string]Relation
}

// Inventory reads everything. It takes thousands of reads: do it when a person
// asks, or when devices come and go. What could not be read is told in the error,
// beside what could.
func (r *Reader) Inventory() (Inventory, error) {
	gpus, err := r.GPUs()
	failed := []error{err}
	devices, err := r.Devices()
	failed = append(failed, err)
	all := Inventory{GPUs: gpus}
	for _, device := range devices {
		detail, err := r.detail(device, gpus)
		all.Devices = append(all.Devices, detail)
		failed = append(failed, err)
	}
	return all, errors.Join(failed...)
}

func (r *Reader) detail(device Device, gpus []PCIDevice) (DeviceDetail, error) {
	detail := DeviceDetail{Device: device, GIDs: map[int][]GID{}, GPUs: map[string]Relation{}}
	var failed []error
	for _, port := range device.Ports {
		gids, err := r.GIDs(device.Name, port.Number)
		if !unplugged(err) {
			failed = append(failed, err)
		}
		detail.GIDs[port.Number] = gids
	}
	if device.PCIAddress == "" {
		return detail, errors.Join(failed...)
	}
	pci, err := r.PCI(device.PCIAddress)
	if err != nil {
		return detail, errors.Join(append(failed, err)...)
	}
	detail.PCI = &pci
	for _, gpu := range gpus {
		if relation := RelationOf(pci, gpu); relation != "" {
			detail.GPUs[gpu.Address] = relation
		}
	}
	return detail, errors.Join(failed...)
}
