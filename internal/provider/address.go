package provider

import "unsafe"

// addressOf returns where the bytes are in memory; the kernel names our own
// mappings by it.
func addressOf(b []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}
