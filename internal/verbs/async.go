package verbs

import "strconv"

// AsyncEventType is enum ib_event_type of the kernel (include/rdma/ib_verbs.h).
type AsyncEventType uint32

// The types of asynchronous events, less those that are a part of the ordinary
// life of a queue.
const (
	AsyncCQError            AsyncEventType = 0
	AsyncQPFatal            AsyncEventType = 1
	AsyncQPRequestError     AsyncEventType = 2
	AsyncQPAccessError      AsyncEventType = 3
	AsyncPathMigrated       AsyncEventType = 6
	AsyncPathMigrationError AsyncEventType = 7
	AsyncDeviceFatal        AsyncEventType = 8
	AsyncPortActive         AsyncEventType = 9
	AsyncPortError          AsyncEventType = 10
	AsyncLIDChange          AsyncEventType = 11
	AsyncPKeyChange         AsyncEventType = 12
	AsyncSMChange           AsyncEventType = 13
	AsyncSRQError           AsyncEventType = 14
	AsyncClientReregister   AsyncEventType = 17
	AsyncGIDChange          AsyncEventType = 18
	AsyncWQFatal            AsyncEventType = 19
)

var asyncNames = map[AsyncEventType]string{
	AsyncCQError:            "cq_error",
	AsyncQPFatal:            "qp_fatal",
	AsyncQPRequestError:     "qp_request_error",
	AsyncQPAccessError:      "qp_access_error",
	AsyncPathMigrated:       "path_migrated",
	AsyncPathMigrationError: "path_migration_error",
	AsyncDeviceFatal:        "device_fatal",
	AsyncPortActive:         "port_active",
	AsyncPortError:          "port_error",
	AsyncLIDChange:          "lid_change",
	AsyncPKeyChange:         "pkey_change",
	AsyncSMChange:           "sm_change",
	AsyncSRQError:           "srq_error",
	AsyncClientReregister:   "client_reregister",
	AsyncGIDChange:          "gid_change",
	AsyncWQFatal:            "wq_fatal",
}

// String returns the value of the attribute rdma.async_event.type.
func (t AsyncEventType) String() string {
	if name, ok := asyncNames[t]; ok {
		return name
	}
	return "type_" + strconv.FormatUint(uint64(t), 10)
}

// AsyncEvent is something that a device told of itself, of a QP or of a CQ.
type AsyncEvent struct {
	// Monotonic is CLOCK_MONOTONIC in nanoseconds when it happened.
	Monotonic uint64
	Type      AsyncEventType
	Device    string
	// Port is the device port, 0 when it is of none (ports count from 1).
	Port uint32
	// Process owns the QP or CQ. Its TGID is 0 when it is of the whole device
	// or of a consumer in the kernel.
	Process ProcessID
	// QPNumber means something when HasQP, CQNumber when HasCQ: that of the CQ,
	// or of the QP's Send Queue, as "rdma resource show cq" prints it.
	QPNumber, CQNumber uint32
	HasQP, HasCQ       bool
}
