package tracer

import (
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// kernelQPs is for how many QPs of the kernel there is room within a bound for all
// maps: they take a sixteenth of it.
func kernelQPs(bound uint64) uint32 { return entriesWithin(bound/16, 8192, kernelQPBytes) }

// kernelRegions is for how many memory regions there is room: they take half as much.
func kernelRegions(bound uint64) uint32 { return entriesWithin(bound/32, 8192, kernelRegionBytes) }

// entriesWithin is how many entries of a table fit a share of the memory for maps,
// no more than most.
func entriesWithin(share, most uint64, bytes func(n uint32) uint64) uint32 {
	// The number of buckets is rounded up to a power of two.
	each := (bytes(uint32(most))-mapHeader)/most + bucketBytes
	return uint32(max(min((max(share, mapHeader)-mapHeader)/each, most), 1))
}

// kernelQPBytes is what so many QPs take.
func kernelQPBytes(n uint32) uint64 {
	return tableBytes(n, unsafe.Sizeof(bpf.ResourcesKernelQpKey{}), unsafe.Sizeof(bpf.ResourcesKernelQp{}))
}

// kernelRegionBytes is what so many memory regions take.
func kernelRegionBytes(n uint32) uint64 {
	return tableBytes(n, unsafe.Sizeof(bpf.ResourcesRegionKey{}), unsafe.Sizeof(bpf.ResourcesRegion{}))
}

// tableBytes is what a table takes that grows as its entries come, and so has no
// elements for processors.
func tableBytes(n uint32, key, value uintptr) uint64 {
	return estimateBytes(&ebpf.MapSpec{Type: ebpf.Hash, MaxEntries: n, KeySize: uint32(key), ValueSize: uint32(value)}, 0)
}
