package fabric

import (
	"fmt"

	"github.com/mdlayher/netlink"
)

// Commands and attributes of the RDMA subsystem's netlink family, from
// include/uapi/rdma/rdma_netlink.h of the kernel.
const (
	nldevClient = 5
	nldevGet    = 1
	nldevQPGet  = 10
	nldevCQGet  = 12
	nldevMRGet  = 13

	nldevDeviceIndex = 1
	nldevDeviceName  = 2
	nldevPortIndex   = 3
	nldevQPs         = 19
	nldevQPEntry     = 20
	nldevQPNumber    = 21
	nldevQPRemote    = 22
	nldevQPType      = 26
	nldevQPState     = 27
	nldevPID         = 28
	nldevKernelName  = 29
	nldevCQs         = 35
	nldevCQEntry     = 36
	nldevCQEntries   = 37
	nldevCQUsers     = 38
	nldevPollContext = 39
	nldevMRs         = 40
	nldevMREntry     = 41
	nldevMRLength    = 45
	nldevCQNumber    = 61
)

// deviceIndex is a device as the family numbers it.
type deviceIndex struct {
	index uint32
	name  string
}

func parseDevice(payload []byte) (deviceIndex, error) {
	var device deviceIndex
	return device, decode(payload, func(d *netlink.AttributeDecoder) error {
		device.read(d)
		return nil
	})
}

// read takes the attributes that name the device.
func (d *deviceIndex) read(from *netlink.AttributeDecoder) {
	switch from.Type() {
	case nldevDeviceIndex:
		d.index = from.Uint32()
	case nldevDeviceName:
		d.name = from.String()
	}
}

// parseQPs parses one message of a dump of queue pairs.
func parseQPs(payload []byte) ([]QPResource, error) {
	var device deviceIndex
	var qps []QPResource
	err := decode(payload, func(d *netlink.AttributeDecoder) error {
		device.read(d)
		if d.Type() == nldevQPs {
			d.Nested(entries(nldevQPEntry, func(entry *netlink.AttributeDecoder) {
				qps = append(qps, QPResource{})
				entry.Nested(each(qps[len(qps)-1].read))
			}))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("parse queue pairs: %w", err)
	}
	for i := range qps {
		qps[i].Device = device.name
	}
	return qps, nil
}

func (q *QPResource) read(from *netlink.AttributeDecoder) {
	q.Owner.read(from)
	switch from.Type() {
	case nldevPortIndex:
		q.Port = present(from.Uint32())
	case nldevQPNumber:
		q.Number = from.Uint32()
	case nldevQPRemote:
		q.RemoteNumber = present(from.Uint32())
	case nldevQPType:
		q.Type = qpType(from.Uint8())
	case nldevQPState:
		q.State = qpState(from.Uint8())
	}
}

// parseCQs parses one message of a dump of Completion Queues.
func parseCQs(payload []byte) ([]CQResource, error) {
	var device deviceIndex
	var cqs []CQResource
	err := decode(payload, func(d *netlink.AttributeDecoder) error {
		device.read(d)
		if d.Type() == nldevCQs {
			d.Nested(entries(nldevCQEntry, func(entry *netlink.AttributeDecoder) {
				cqs = append(cqs, CQResource{})
				entry.Nested(each(cqs[len(cqs)-1].read))
			}))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("parse Completion Queues: %w", err)
	}
	for i := range cqs {
		cqs[i].Device = device.name
	}
	return cqs, nil
}

func (c *CQResource) read(from *netlink.AttributeDecoder) {
	c.Owner.read(from)
	switch from.Type() {
	case nldevCQEntries:
		c.Entries = from.Uint32()
	case nldevCQUsers:
		c.Users = present(from.Uint64())
	case nldevPollContext:
		c.PollContext = pollContext(from.Uint8())
	case nldevCQNumber:
		c.Number = present(from.Uint32())
	}
}

// parseMRs parses one message of a dump of memory regions.
func parseMRs(payload []byte) ([]MRResource, error) {
	var device deviceIndex
	var mrs []MRResource
	err := decode(payload, func(d *netlink.AttributeDecoder) error {
		device.read(d)
		if d.Type() == nldevMRs {
			d.Nested(entries(nldevMREntry, func(entry *netlink.AttributeDecoder) {
				mrs = append(mrs, MRResource{})
				entry.Nested(each(mrs[len(mrs)-1].read))
			}))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("parse memory regions: %w", err)
	}
	for i := range mrs {
		mrs[i].Device = device.name
	}
	return mrs, nil
}

func (m *MRResource) read(from *netlink.AttributeDecoder) {
	m.Owner.read(from)
	if from.Type() == nldevMRLength {
		m.Bytes = from.Uint64()
	}
}

func (o *Owner) read(from *netlink.AttributeDecoder) {
	switch from.Type() {
	case nldevPID:
		o.PID = from.Uint32()
	case nldevKernelName:
		o.Kernel = from.String()
	}
}

func present[T any](value T) *T { return &value }

// decode calls read for every attribute of a message.
func decode(payload []byte, read func(*netlink.AttributeDecoder) error) error {
	decoder, err := netlink.NewAttributeDecoder(payload)
	if err != nil {
		return err
	}
	for decoder.Next() {
		if err := read(decoder); err != nil {
			return err
		}
	}
	return decoder.Err()
}

// each makes a function for every attribute one for all of a nest.
func each(read func(*netlink.AttributeDecoder)) func(*netlink.AttributeDecoder) error {
	return func(nest *netlink.AttributeDecoder) error {
		for nest.Next() {
			read(nest)
		}
		return nest.Err()
	}
}

// entries calls read for the attributes of one type.
func entries(kind uint16, read func(*netlink.AttributeDecoder)) func(*netlink.AttributeDecoder) error {
	return each(func(entry *netlink.AttributeDecoder) {
		if entry.Type() == kind {
			read(entry)
		}
	})
}
