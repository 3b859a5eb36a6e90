package rdmareceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/incident"
	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/text"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// shown is what extensions show of the receiver. Without such an extension its
// zero value does nothing.
type shown struct {
	state *radar.State
	ends  []func()
}

// show shows a new state on every board among the extensions of the host.
func show(host component.Host) shown {
	var s shown
	for _, extension := range host.GetExtensions() {
		board, ok := extension.(radar.Board)
		if !ok {
			continue
		}
		if s.state == nil {
			s.state = radar.NewState()
		}
		s.ends = append(s.ends, board.Show(s.state))
	}
	return s
}

// end takes the state off the boards.
func (s shown) end() {
	for _, end := range s.ends {
		end()
	}
}

func (s shown) name(facts hostFacts, version string) {
	if s.state != nil {
		s.state.Name(radar.Node{Host: facts.Name, Version: version})
	}
}

func (s shown) fail(err error) {
	if s.state != nil {
		s.state.Fail(err)
	}
}

func (s shown) open(of *session) {
	if s.state == nil {
		return
	}
	s.state.Open(radar.Source{
		Identify:  func(id verbs.ProcessID) radar.Process { return shownProcess(id, of.identify(id)) },
		HidePeers: !of.cfg.PeerAddresses,
	})
	s.state.Impair(of.engine.Impaired())
	if of.host.gpus == nil {
		return
	}
	// GPUs do not come and go while a machine runs.
	gpus, err := of.host.gpus()
	if err != nil {
		of.logger.Warn("The GPUs of the node could not be listed and are not on the radar page.", zap.Error(err))
	}
	of.gpus = gpus
}

func (s shown) impair(err error) {
	if s.state != nil {
		s.state.Impair(err)
	}
}

// watched reports whether somebody looks.
func (s shown) watched() bool { return s.state != nil && s.state.Watched() }

// look takes a glance, which must not change any more.
func (s shown) look(by *session, snap *verbs.Snapshot) {
	if s.state == nil {
		return
	}
	var nodes map[uint32]int
	if s.state.Watched() {
		nodes = pollerNodes(snap.Queues, by.host.threads, by.host.topology)
	}
	s.state.Look(by.clock.at(snap.Monotonic).AsTime(), snap, nodes)
}

// maxPollerNodes bounds the threads of which it is read where they run.
const maxPollerNodes = 256

// pollerNodes are the NUMA nodes on which the threads that poll run at the moment.
func pollerNodes(queues []verbs.QueueInfo, threads threads, topology numaNodes) map[uint32]int {
	nodes := map[uint32]int{}
	if threads == nil {
		return nodes
	}
	asked := map[uint32]bool{}
	for i := range queues {
		q := &queues[i]
		if q.Poller == 0 || asked[q.Poller] || q.ID.Process.InKernel() || len(asked) >= maxPollerNodes {
			continue
		}
		asked[q.Poller] = true
		state, err := threads.ThreadState(int(q.ID.Process.TGID), int(q.Poller))
		if err != nil {
			continue
		}
		if node, ok := topology.CPUNode(state.CPU); ok {
			nodes[q.Poller] = node
		}
	}
	return nodes
}

// collect takes a snapshot, and what the node has as it was last seen.
func (s shown) collect(by *session, snap *verbs.Snapshot) {
	if s.state == nil {
		return
	}
	s.state.Collect(snap)
	if by.devices == nil {
		return
	}
	if sample := by.devices.latest(); sample != nil {
		s.state.Equip(radar.MachineOf(sample.Devices, by.gpus))
	}
}

func (s shown) judge(by *session, judged []judged) {
	if s.state == nil || len(judged) == 0 {
		return
	}
	bursts := make([]radar.Burst, 0, len(judged))
	for i := range judged {
		j := &judged[i]
		bursts = append(bursts, radar.Burst{
			Queue: j.queue, Device: j.device,
			First: by.clock.at(j.first).AsTime(), Last: by.clock.at(j.last).AsTime(),
			Slow: j.reported, Lost: j.lost, Worst: j.worst, Stages: j.stages,
			// A send that goes on being stuck is not counted again, but it is there.
			Stuck: max(j.stuckCount, uint64(len(j.stuck))),
			Cause: j.verdict.Cause, Title: by.judge.title(j.verdict.Cause),
		})
	}
	s.state.Judge(bursts)
}

func (s shown) slow(by *session, events []slowEvent) {
	if s.state == nil || len(events) == 0 {
		return
	}
	requests := make([]radar.Request, 0, len(events))
	for i := range events {
		requests = append(requests, shownRequest(&events[i], by.in.topology))
	}
	s.state.Slow(requests)
}

func shownRequest(e *slowEvent, nodes numaNodes) radar.Request {
	c := &e.completion
	r := radar.Request{
		At:        e.end.AsTime().UnixMilli(),
		Queue:     shownQueue(c.Queue, c.Device),
		Process:   shownProcess(c.Queue.Process, e.process),
		Operation: c.Operation.String(), Bytes: c.Bytes,
		Duration: int64(c.Duration()), Excess: int64(c.Excess()),
		Stages: radar.StagesOf(&c.Stages), Cause: e.verdict.Cause,
	}
	if c.Status != verbs.StatusSuccess {
		r.Status = c.Status.String()
	}
	device, deviceKnown := nodes.DeviceNode(c.Device)
	cpu, cpuKnown := nodes.CPUNode(int(c.Poller.CPU))
	if c.Poller.TID != 0 && deviceKnown && cpuKnown {
		r.Locality = locality(cpu, device)
	}
	return r
}

func shownProcess(id verbs.ProcessID, who *identity) radar.Process {
	p := radar.Process{Name: nameOf(id, who), Kernel: id.InKernel(), Service: who.job.service, Rank: who.facts.Rank, Job: who.facts.SlurmJobID}
	if !p.Kernel {
		p.PID = id.TGID
	}
	return p
}

func shownQueue(id verbs.QueueID, device string) radar.QueueName {
	name := radar.QueueName{Device: device, QP: id.QPNumber}
	if !id.Process.InKernel() {
		name.PID = id.Process.TGID
	}
	return name
}

func (s shown) tell(by *session, records []incident.Record) {
	if s.state == nil {
		return
	}
	for i := range records {
		s.state.Tell(shownIncident(&records[i], by))
	}
}

func shownIncident(r *incident.Record, by *session) radar.Incident {
	i := &r.Incident
	shown := radar.Incident{
		ID: i.ID, Open: r.State != incident.Closed,
		Subject: text.Clean(subject(i), maxClause), Happened: text.Clean(happened(i), maxClause),
		Cause: i.Verdict.Cause, Title: by.judge.title(i.Verdict.Cause), Confidence: i.Verdict.Confidence.String(),
		For: cleanTexts(textsOf(i.Verdict.For)), Against: cleanTexts(textsOf(i.Verdict.Against)),
		Missing: cleanTexts(i.Verdict.Missing), Remedy: text.Clean(sentence(i.Verdict.Remedy), maxClause),
		Device: i.Device,
		First:  by.clock.at(i.First).AsTime().UnixMilli(), Last: by.clock.at(i.Last).AsTime().UnixMilli(),
		Slow: i.Slow, Lost: int64(i.Excess), More: i.Queues.More,
	}
	for _, other := range i.Verdict.Others {
		shown.Others = append(shown.Others, by.judge.title(other))
	}
	for _, q := range i.Queues.Values {
		shown.Queues = append(shown.Queues, shownQueue(q, i.Device))
	}
	return shown
}

func cleanTexts(all []string) []string {
	var clean []string
	for _, t := range all {
		clean = append(clean, text.Clean(t, maxClause))
	}
	return clean
}
