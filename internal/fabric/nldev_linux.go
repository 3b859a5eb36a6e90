package fabric

import (
	"errors"
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// dumpTime is the longest time of a dump: on some NICs each queue pair in it is
// a command to the firmware.
const dumpTime = 30 * time.Second

// Resources asks the kernel for the RDMA resources of the network namespace it
// was opened in. It needs no capability; resources of processes in other PID
// namespaces have no PID. It is not safe for concurrent use.
type Resources struct {
	conn connection
}

// connection is what is needed of a *netlink.Conn.
type connection interface {
	Execute(netlink.Message) ([]netlink.Message, error)
	SetDeadline(time.Time) error
	Close() error
}

// OpenResources connects to the RDMA subsystem. It fails where the kernel has
// none, or has not loaded it.
func OpenResources() (*Resources, error) {
	conn, err := netlink.Dial(unix.NETLINK_RDMA, nil)
	if err != nil {
		return nil, fmt.Errorf("open an RDMA netlink socket (is ib_core loaded?): %w", err)
	}
	return &Resources{conn: conn}, nil
}

// Close ends the connection.
func (r *Resources) Close() error { return r.conn.Close() }

// QPs returns the queue pairs of all devices.
func (r *Resources) QPs() ([]QPResource, error) {
	return dumpAll(r, nldevQPGet, parseQPs)
}

// CQs returns the Completion Queues of all devices.
func (r *Resources) CQs() ([]CQResource, error) {
	return dumpAll(r, nldevCQGet, parseCQs)
}

// MRs returns the memory regions of all devices.
func (r *Resources) MRs() ([]MRResource, error) {
	return dumpAll(r, nldevMRGet, parseMRs)
}

// dumpAll dumps one kind of resource of every device. A device that is unplugged
// meanwhile is left out; what else fails is told beside what did not.
func dumpAll[T any](r *Resources, command uint16, parse func([]byte) ([]T, error)) ([]T, error) {
	devices, err := r.devices()
	if err != nil {
		return nil, err
	}
	var all []T
	var failed []error
	for _, device := range devices {
		some, err := dumpDevice(r, command, device, parse)
		all = append(all, some...)
		if err != nil && !unplugged(err) {
			failed = append(failed, fmt.Errorf("dump the resources of RDMA device %s: %w", device.name, err))
		}
	}
	return all, errors.Join(failed...)
}

func dumpDevice[T any](r *Resources, command uint16, device deviceIndex, parse func([]byte) ([]T, error)) ([]T, error) {
	encoder := netlink.NewAttributeEncoder()
	encoder.Uint32(nldevDeviceIndex, device.index)
	request, err := encoder.Encode()
	if err != nil {
		return nil, err
	}
	messages, err := r.dump(command, request)
	if err != nil {
		return nil, err
	}
	var all []T
	for _, message := range messages {
		some, err := parse(message.Data)
		if err != nil {
			return all, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (r *Resources) devices() ([]deviceIndex, error) {
	messages, err := r.dump(nldevGet, nil)
	if err != nil {
		return nil, fmt.Errorf("list RDMA devices by netlink: %w", err)
	}
	var devices []deviceIndex
	for _, message := range messages {
		device, err := parseDevice(message.Data)
		if err != nil {
			return nil, fmt.Errorf("list RDMA devices by netlink: %w", err)
		}
		devices = append(devices, device)
	}
	return devices, nil
}

func (r *Resources) dump(command uint16, request []byte) ([]netlink.Message, error) {
	if err := r.conn.SetDeadline(time.Now().Add(dumpTime)); err != nil {
		return nil, err
	}
	return r.conn.Execute(netlink.Message{
		Header: netlink.Header{
			Type:  netlink.HeaderType(nldevClient<<10 | command),
			Flags: netlink.Request | netlink.Dump,
		},
		Data: request,
	})
}
