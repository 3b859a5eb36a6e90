package fabric

// DevicePCIAddress is the address of the PCI function of the RDMA device with that
// name, which need not be trusted; "" when there is none.
func (r *Reader) DevicePCIAddress(name string) string {
	if !isName(name) {
		return ""
	}
	_, address := pciFunction(physicalDevice(r.devicePath(name)))
	return address
}
