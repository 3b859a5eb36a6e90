package verbs

import "time"

// MemoryKind is where registered memory is.
type MemoryKind uint8

// The kinds of memory.
const (
	// MemoryUnknown: it was registered before the tracer started.
	MemoryUnknown MemoryKind = iota
	// MemoryHost is the memory of the process.
	MemoryHost
	// MemoryDMABuf is another driver's, such as a GPU's, by a file descriptor.
	MemoryDMABuf
	// MemoryPeer is another driver's, such as a GPU's, by an address.
	MemoryPeer
	// MemoryDevice is the RDMA device's own.
	MemoryDevice
)

// String returns the value of rdma.memory.kind, "" when it is not known.
func (k MemoryKind) String() string {
	switch k {
	case MemoryHost:
		return "host"
	case MemoryDMABuf:
		return "dmabuf"
	case MemoryPeer:
		return "peer"
	case MemoryDevice:
		return "device"
	default:
		return ""
	}
}

// Memory is what is known of a registered memory region.
type Memory struct {
	Kind MemoryKind
	// Exporter is the driver that a dma-buf is of, such as "nvidia"; "" when it is
	// not known.
	Exporter string
	// GPU is the UUID of the GPU that a peer's memory is on, such as
	// "GPU-6d1f2c3b-…"; "" when it is not known.
	GPU string
}

// Registrations is what one process registered of one kind of memory on one
// device, with one outcome. All but the live ones are cumulative.
type Registrations struct {
	Process ProcessID
	Device  string
	Kind    MemoryKind
	// Errno is why they failed, 0 for those that did not.
	Errno uint32
	// Count and Bytes are of registrations, Time is what they took. Those that
	// failed have no bytes.
	Count, Bytes uint64
	Time         time.Duration
	// DeregistrationTime is what deregistrations took.
	DeregistrationTime time.Duration
	// Regions and RegionBytes are those of the regions that live now. Those from
	// before the tracer are among them, and are not in Count and Bytes.
	Regions, RegionBytes uint64
}
