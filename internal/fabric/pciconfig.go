package fabric

import (
	"encoding/binary"
	"io"
)

// Offsets and identifiers of configuration space, from the PCI Local Bus and the
// PCI Express Base Specification (include/uapi/linux/pci_regs.h).
const (
	configStatus          = 0x06
	configCapabilities    = 0x34
	configStatusCapList   = 1 << 4
	configHeaderEnd       = 0x40
	configExtended        = 0x100
	configEnd             = 0x1000
	capabilityPCIe        = 0x10
	pcieDeviceControl     = 0x08
	extendedCapabilityACS = 0x000d
	acsControl            = 0x06
)

// PCIeControl is how a function may access memory, from its Device Control
// register.
type PCIeControl struct {
	// RelaxedOrdering: writes that allow it may overtake others.
	RelaxedOrdering bool
	// MaxReadRequest and MaxPayload are the most bytes of a read request and of
	// a packet.
	MaxReadRequest, MaxPayload int
}

// ACS is Access Control Services of a function. On a bridge, request or
// completion redirect sends traffic between two devices below it up to the root
// complex and back, which halves the bandwidth of GPUDirect RDMA or worse.
type ACS struct {
	// Supported is false for a function without the capability; the others are
	// false then.
	Supported bool
	// What is enabled.
	SourceValidation, TranslationBlocking, RequestRedirect, CompletionRedirect,
	UpstreamForwarding, EgressControl, DirectTranslated bool
}

// Redirects reports whether traffic between devices takes the way over the root
// complex.
func (a ACS) Redirects() bool { return a.RequestRedirect || a.CompletionRedirect }

// ACSRedirects reports whether a bridge above the device redirects traffic to
// its neighbours; false for known when some bridge's configuration could not be
// read and none of the others redirects, or there is no bridge.
func (d PCIDevice) ACSRedirects() (redirects, known bool) {
	known = len(d.Bridges) > 0
	for _, bridge := range d.Bridges {
		if bridge.ACS == nil {
			known = false
			continue
		}
		if bridge.ACS.Redirects() {
			return true, true
		}
	}
	return false, known
}

// parseConfig reads the few registers that matter, one by one: every read is a
// transaction on the bus. What cannot be read, for want of CAP_SYS_ADMIN or
// because the bytes are not a configuration space, is nil.
func parseConfig(config io.ReaderAt) (*PCIeControl, *ACS) {
	c := configSpace{config}
	status, ok := c.word(configStatus)
	if !ok || status == 0xffff || status&configStatusCapList == 0 {
		return nil, nil
	}
	base, ok := c.capability(capabilityPCIe)
	if !ok {
		return nil, nil
	}
	register, ok := c.word(base + pcieDeviceControl)
	if !ok {
		return nil, nil
	}
	return &PCIeControl{
		RelaxedOrdering: register&(1<<4) != 0,
		MaxReadRequest:  sizeOf(register >> 12),
		MaxPayload:      sizeOf(register >> 5),
	}, c.acs()
}

// sizeOf decodes the three bits of a size; 6 and 7 are reserved and not known.
func sizeOf(bits uint16) int {
	if bits &= 7; bits <= 5 {
		return 128 << bits
	}
	return 0
}

// configSpace is a configuration space that may be short or nonsense.
type configSpace struct{ io.ReaderAt }

func (c configSpace) word(offset int) (uint16, bool) {
	var bytes [2]byte
	if offset < 0 || offset+len(bytes) > configEnd {
		return 0, false
	}
	if _, err := c.ReadAt(bytes[:], int64(offset)); err != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint16(bytes[:]), true
}

// capability finds a capability in the list of the first 256 bytes. The list may
// be a ring: as many steps are taken as there is room for entries.
func (c configSpace) capability(id uint8) (int, bool) {
	pointer, ok := c.word(configCapabilities)
	at := int(pointer & 0xfc)
	for range (configExtended - configHeaderEnd) / 4 {
		if !ok || at < configHeaderEnd {
			return 0, false
		}
		var header uint16
		if header, ok = c.word(at); ok && uint8(header) == id {
			return at, true
		}
		at = int(header>>8) & 0xfc
	}
	return 0, false
}

// acs is nil when the extended configuration space cannot be read.
func (c configSpace) acs() *ACS {
	at := configExtended
	for range (configEnd - configExtended) / 4 {
		id, okID := c.word(at)
		next, okNext := c.word(at + 2)
		if !okID || !okNext || id == 0xffff {
			return nil
		}
		if id == extendedCapabilityACS {
			return c.acsAt(at)
		}
		// The four lowest bits are a version.
		at = int(next >> 4)
		if at < configExtended {
			return &ACS{}
		}
	}
	return nil
}

func (c configSpace) acsAt(at int) *ACS {
	control, ok := c.word(at + acsControl)
	if !ok {
		return nil
	}
	return &ACS{
		Supported:           true,
		SourceValidation:    control&(1<<0) != 0,
		TranslationBlocking: control&(1<<1) != 0,
		RequestRedirect:     control&(1<<2) != 0,
		CompletionRedirect:  control&(1<<3) != 0,
		UpstreamForwarding:  control&(1<<4) != 0,
		EgressControl:       control&(1<<5) != 0,
		DirectTranslated:    control&(1<<6) != 0,
	}
}
