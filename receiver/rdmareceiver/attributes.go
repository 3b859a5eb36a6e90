package rdmareceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// The names of the attributes of spans and logs, as in metadata.yaml.
const (
	attributeAsyncEventType   = "rdma.async_event.type"
	attributeCPU              = "cpu.logical_number"
	attributeCPUNode          = "rdma.cpu.numa_node"
	attributeCQHandle         = "rdma.cq.handle"
	attributeCQNumber         = "rdma.cq.number"
	attributeCQSize           = "rdma.cq.size"
	attributeDevice           = "rdma.device.name"
	attributeDeviceNode       = "rdma.device.numa_node"
	attributeDevicePort       = "rdma.device.port"
	attributeDirection        = "network.io.direction"
	attributeErrorType        = "error.type"
	attributeGPUPCIAddress    = "rdma.gpu.pci.address"
	attributeGPURelation      = "rdma.gpu.relation"
	attributeGPUUUID          = "rdma.gpu.uuid"
	attributeIncidentExcess   = "rdma.incident.excess_time"
	attributeIncidentFirst    = "rdma.incident.first_time"
	attributeIncidentID       = "rdma.incident.id"
	attributeIncidentLast     = "rdma.incident.last_time"
	attributeIncidentPIDs     = "rdma.incident.pids"
	attributeIncidentQPs      = "rdma.incident.qp_numbers"
	attributeIncidentRanks    = "rdma.incident.ranks"
	attributeIncidentSilence  = "rdma.incident.silence"
	attributeIncidentSlow     = "rdma.incident.slow_completions"
	attributeIncidentSpans    = "rdma.incident.spans"
	attributeIncidentState    = "rdma.incident.state"
	attributeIncidentStuck    = "rdma.incident.stuck"
	attributeIncidentWorst    = "rdma.incident.worst_duration"
	attributeLocalRank        = "rdma.local_rank"
	attributeLocalAddress     = "network.local.address"
	attributeLocalGID         = "rdma.local.gid"
	attributeLocality         = "rdma.numa.locality"
	attributeMemoryExporter   = "rdma.memory.exporter"
	attributeMemoryKind       = "rdma.memory.kind"
	attributeOperation        = "rdma.operation.name"
	attributeOutstanding      = "rdma.sq.outstanding"
	attributePID              = "process.pid"
	attributePeerAddress      = "network.peer.address"
	attributePeerGID          = "rdma.peer.gid"
	attributePeerLID          = "rdma.peer.lid"
	attributePollCPU          = "rdma.poll.cpu.logical_number"
	attributePollCPUNode      = "rdma.poll.cpu.numa_node"
	attributePollInterrupted  = "rdma.poll.thread.interrupted_time"
	attributePollPreemptedBy  = "rdma.poll.thread.preempted_by"
	attributePollRunnable     = "rdma.poll.thread.runnable_time"
	attributePollSleep        = "rdma.poll.thread.sleep_time"
	attributePollStopped      = "rdma.poll.thread.stopped_time"
	attributePollThreadID     = "rdma.poll.thread.id"
	attributePollThreadName   = "rdma.poll.thread.name"
	attributeQPAckTimeout     = "rdma.qp.ack_timeout"
	attributeQPMinRNRTimer    = "rdma.qp.min_rnr_timer"
	attributeQPNumber         = "rdma.qp.number"
	attributeQPPathMTU        = "rdma.qp.path_mtu"
	attributeQPRemoteNumber   = "rdma.qp.remote_number"
	attributeQPRetryCount     = "rdma.qp.retry_count"
	attributeQPRNRRetryCount  = "rdma.qp.rnr_retry_count"
	attributeQPState          = "rdma.qp.state"
	attributeQPServiceLevel   = "rdma.qp.service_level"
	attributeQPTrafficClass   = "rdma.qp.traffic_class"
	attributeQPType           = "rdma.qp.type"
	attributeRQLimit          = "rdma.rq.limit"
	attributeRank             = "rdma.rank"
	attributeSQLimit          = "rdma.sq.limit"
	attributeSQSignalsAll     = "rdma.sq.signals_all"
	attributeSlowCause        = "rdma.slow.cause"
	attributeStage            = "rdma.wqe.stage"
	attributeStagePrefix      = "rdma.wqe.stage."
	attributeStatus           = "rdma.wc.status"
	attributeThreadID         = "thread.id"
	attributeThreadName       = "thread.name"
	attributeThreshold        = "rdma.threshold"
	attributeVendorError      = "rdma.wc.vendor_error"
	attributeVerdictAgainst   = "rdma.verdict.against"
	attributeConfidence       = "rdma.verdict.confidence"
	attributeVerdictFor       = "rdma.verdict.for"
	attributeVerdictMissing   = "rdma.verdict.missing"
	attributeVerdictOthers    = "rdma.verdict.others"
	attributeVerdictRemedy    = "rdma.verdict.remedy"
	attributeWQEAge           = "rdma.wqe.age"
	attributeWQEBusy          = "rdma.wqe.busy_time"
	attributeWQEDuration      = "rdma.wqe.duration"
	attributeWQEExcess        = "rdma.wqe.excess_time"
	attributeWorkRequestCount = "rdma.wr.count"
	attributeWorkRequestSize  = "rdma.wr.size"
	attributeWorldSize        = "rdma.world_size"
)

// putRequest puts what is known of a request from its post on.
func putRequest(to pcommon.Map, wr *verbs.WorkRequest, who *identity, in surroundings) {
	putQueue(to, wr)
	putProcess(to, wr.Queue.Process, who)
	putSetup(to, &wr.Setup)
	putPath(to, &wr.Path, in.peerAddresses)
	putMemory(to, wr.Memory, wr.Device, in.topology)
	putPoster(to, wr.Poster, wr.Device, in.topology)
}

// putQueue puts what names the queue, its device and the request on it. Values
// that are not known are left out.
func putQueue(to pcommon.Map, wr *verbs.WorkRequest) {
	to.PutInt(attributeQPNumber, int64(wr.Queue.QPNumber))
	putString(to, attributeQPType, wr.QPType.String())
	putPositive(to, attributeQPRemoteNumber, int64(wr.RemoteQP))
	if wr.HasCQNumber {
		to.PutInt(attributeCQNumber, int64(wr.CQNumber))
	} else {
		putCQ(to, wr.CQ)
	}
	putPositive(to, attributeCQSize, int64(wr.CQSize))
	putString(to, attributeDevice, wr.Device)
	putPositive(to, attributeDevicePort, int64(wr.Port))
	to.PutStr(attributeOperation, wr.Operation.String())
	to.PutInt(attributeWorkRequestSize, int64(wr.Bytes))
	putPositive(to, attributeOutstanding, int64(wr.Outstanding))
}

// putMemory puts where the memory of the request is, and how far from the device.
func putMemory(to pcommon.Map, m verbs.Memory, device string, where topology) {
	putString(to, attributeMemoryKind, m.Kind.String())
	putString(to, attributeMemoryExporter, m.Exporter)
	if m.GPU == "" {
		return
	}
	to.PutStr(attributeGPUUUID, m.GPU)
	address, relation := where.GPU(m.GPU, device)
	putString(to, attributeGPUPCIAddress, address)
	putString(to, attributeGPURelation, string(relation))
}

// putProcess puts the process and its place in the job; a consumer in the kernel
// is no process.
func putProcess(to pcommon.Map, id verbs.ProcessID, who *identity) {
	if !id.InKernel() {
		to.PutInt(attributePID, int64(id.TGID))
	}
	putOptional(to, attributeRank, who.facts.Rank)
	putOptional(to, attributeLocalRank, who.facts.LocalRank)
	putOptional(to, attributeWorldSize, who.facts.WorldSize)
}

// putPoster puts where the request was posted, and whether that is near the
// device.
func putPoster(to pcommon.Map, poster verbs.Thread, device string, where topology) {
	deviceNode, deviceKnown := where.DeviceNode(device)
	if deviceKnown {
		to.PutInt(attributeDeviceNode, int64(deviceNode))
	}
	if poster.TID == 0 {
		return
	}
	to.PutInt(attributeThreadID, int64(poster.TID))
	putString(to, attributeThreadName, poster.Name)
	to.PutInt(attributeCPU, int64(poster.CPU))
	cpuNode, cpuKnown := where.CPUNode(int(poster.CPU))
	if cpuKnown {
		to.PutInt(attributeCPUNode, int64(cpuNode))
	}
	if cpuKnown && deviceKnown {
		to.PutStr(attributeLocality, locality(cpuNode, deviceNode))
	}
}

// locality is the value of rdma.numa.locality.
func locality(cpuNode, deviceNode int) string {
	if cpuNode == deviceNode {
		return "local"
	}
	return "remote"
}

// putPoller puts where the completion was polled.
func putPoller(to pcommon.Map, poller verbs.Thread, where topology) {
	if poller.TID == 0 {
		return
	}
	to.PutInt(attributePollThreadID, int64(poller.TID))
	putString(to, attributePollThreadName, poller.Name)
	to.PutInt(attributePollCPU, int64(poller.CPU))
	if node, ok := where.CPUNode(int(poller.CPU)); ok {
		to.PutInt(attributePollCPUNode, int64(node))
	}
}

// putOutcome puts how the work request ended, where its time went and why.
func putOutcome(to pcommon.Map, e *slowEvent) {
	c := &e.completion
	to.PutInt(attributeWorkRequestCount, int64(c.Requests))
	to.PutStr(attributeStatus, c.Status.String())
	if c.Status != verbs.StatusSuccess {
		to.PutStr(attributeErrorType, c.Status.String())
		putPositive(to, attributeVendorError, int64(c.VendorError))
	}
	to.PutDouble(attributeWQEDuration, secondsOf(c.Duration()))
	if c.HasBusy {
		to.PutDouble(attributeWQEBusy, secondsOf(c.Busy))
	}
	to.PutDouble(attributeWQEExcess, secondsOf(c.Excess()))
	to.PutDouble(attributeThreshold, secondsOf(c.Threshold))
	for stage := range verbs.NumStages {
		if c.Known.Has(stage) {
			to.PutDouble(attributeStagePrefix+stage.String(), secondsOf(c.Stages[stage]))
		}
	}
	if isSlow(c) {
		to.PutStr(attributeSlowCause, e.verdict.Cause)
		putString(to, attributeConfidence, e.verdict.Confidence.String())
	}
}

func putString(to pcommon.Map, key, value string) {
	if value != "" {
		to.PutStr(key, value)
	}
}

// putPositive puts a number that is not known when it is 0.
func putPositive(to pcommon.Map, key string, value int64) {
	if value != 0 {
		to.PutInt(key, value)
	}
}

func putOptional(to pcommon.Map, key string, value *int) {
	if value != nil {
		to.PutInt(key, int64(*value))
	}
}
