package radar

import "github.com/rdmaradar/rdmaradar/internal/verbs"

// tableOf is what a table of queues is made of. now is nil before the first look.
type tableOf struct {
	now, before, mark *look
}

// names numbers values in the order in which they come.
type names[T comparable] struct {
	values []T
	index  map[T]int
}

func newNames[T comparable]() names[T] { return names[T]{values: []T{}, index: map[T]int{}} }

func (n *names[T]) of(value T) int {
	i, ok := n.index[value]
	if !ok {
		i = len(n.values)
		n.index[value] = i
		n.values = append(n.values, value)
	}
	return i
}

// rows makes a row of each queue.
func (t tableOf) rows(source *Source, troubles map[verbs.QueueID]Trouble) QueueTable {
	table := newTable(t)
	if t.now == nil {
		return table
	}
	processes, devices, peers := newNames[verbs.ProcessID](), newNames[string](), newNames[string]()
	before, mark := t.before.finder(), t.mark.finder()
	for i := range t.now.queues {
		q := &t.now.queues[i]
		table.Process = append(table.Process, processes.of(q.ID.Process))
		table.Device = append(table.Device, devices.of(q.Device))
		table.Peer = append(table.Peer, peerOf(&peers, &q.Path, source.HidePeers))
		table.addState(q)
		table.Node = append(table.Node, t.now.nodeOf(q.Poller))
		table.addRate(q, before.find(i, q), t.seconds())
		trouble, ok := troubles[q.ID]
		if ok {
			if q.Oldest < stuckLeast {
				trouble.Stuck = 0
			}
			table.Troubles[i] = trouble
		}
		table.addDurations(q, mark.find(i, q), trouble.Worst)
	}
	for _, id := range processes.values {
		table.Processes = append(table.Processes, source.Identify(id))
	}
	table.Devices, table.Peers = devices.values, peers.values
	return table
}

// newTable is an empty one with room.
func newTable(t tableOf) QueueTable {
	n, over := 0, int64(0)
	if t.now != nil {
		n, over = len(t.now.queues), t.now.at-t.mark.at
	}
	return QueueTable{
		Over: over * 1e6, Processes: []Process{}, Devices: []string{}, Peers: []string{},
		Process: make([]int, 0, n), Device: make([]int, 0, n), Peer: make([]int, 0, n),
		QP: make([]uint32, 0, n), RemoteQP: make([]uint32, 0, n), Type: make([]string, 0, n), State: make([]string, 0, n),
		Outstanding: make([]uint32, 0, n), Peak: make([]uint32, 0, n), Limit: make([]uint32, 0, n), Node: make([]int, 0, n), Oldest: make([]int64, 0, n),
		Rate: make([]float64, 0, n), Throughput: make([]float64, 0, n), Completions: make([]uint64, 0, n),
		P50: make([]int64, 0, n), P99: make([]int64, 0, n), P999: make([]int64, 0, n), Worst: make([]int64, 0, n),
		Slow: make([]uint64, 0, n), Troubles: map[int]Trouble{},
	}
}

// seconds is the time between the last two looks.
func (t tableOf) seconds() float64 {
	if t.before == nil {
		return 0
	}
	return float64(t.now.at-t.before.at) / 1e3
}

// peerOf is -1 where the peer is not known or not to be shown.
func peerOf(peers *names[string], p *verbs.Path, hide bool) int {
	name := peerName(p)
	if name == "" || hide {
		return -1
	}
	return peers.of(name)
}

func peerName(p *verbs.Path) string {
	if address := p.RemoteAddress(); address.IsValid() {
		return address.String()
	}
	return p.RemoteGID.String()
}

// nodeOf is the NUMA node of a thread, -1 where it is not known.
func (l *look) nodeOf(tid uint32) int {
	if node, ok := l.nodes[tid]; ok && tid != 0 {
		return node
	}
	return -1
}

func (t *QueueTable) addState(q *verbs.QueueInfo) {
	t.QP = append(t.QP, q.ID.QPNumber)
	t.RemoteQP = append(t.RemoteQP, q.RemoteQP)
	t.Type = append(t.Type, q.Type.String())
	t.State = append(t.State, q.State.String())
	t.Outstanding = append(t.Outstanding, q.Outstanding)
	t.Peak = append(t.Peak, q.Peak)
	t.Limit = append(t.Limit, q.Limit)
	t.Oldest = append(t.Oldest, int64(q.Oldest))
}

func (t *QueueTable) addRate(q *verbs.QueueInfo, before *verbs.Traffic, seconds float64) {
	if seconds <= 0 {
		t.Rate, t.Throughput = append(t.Rate, 0), append(t.Throughput, 0)
		return
	}
	var done durations
	done.addIncrease(&q.Traffic, before)
	t.Rate = append(t.Rate, perSecond(done.total(), seconds))
	t.Throughput = append(t.Throughput, perSecond(q.Traffic.Bytes-before.Bytes, seconds))
}

// perSecond has no digits that nobody reads.
func perSecond(n uint64, seconds float64) float64 {
	return float64(int64(float64(n)/seconds*10+0.5)) / 10
}

func (t *QueueTable) addDurations(q *verbs.QueueInfo, mark *verbs.Traffic, exact int64) {
	var done durations
	done.addIncrease(&q.Traffic, mark)
	total := done.total()
	t.Completions = append(t.Completions, total)
	t.P50 = append(t.P50, done.quantile(total, 500))
	t.P99 = append(t.P99, done.quantile(total, 990))
	t.P999 = append(t.P999, done.quantile(total, 999))
	t.Worst = append(t.Worst, worst(done.quantile(total, 1000), exact))
	t.Slow = append(t.Slow, q.Traffic.Slow-mark.Slow)
}

// worst is the longest duration that was reported where it can be the one that the
// highest bucket has, and else the edge of that bucket. Each edge is √2 above the
// one before.
func worst(edge, exact int64) int64 {
	if exact <= edge && 10*exact > 7*edge {
		return exact
	}
	return edge
}

// pace adds up what the queues do.
func (t tableOf) pace(table *QueueTable) Pace {
	p := Pace{Queues: table.Len()}
	if t.now == nil {
		return p
	}
	var done durations
	before, mark := t.before.finder(), t.mark.finder()
	for i := range t.now.queues {
		q := &t.now.queues[i]
		if q.State != verbs.QueueSynced {
			p.Untimed++
		}
		p.Completions += table.Rate[i]
		p.Bytes += table.Throughput[i]
		if t.before != nil {
			p.Slow += q.Traffic.Slow - before.find(i, q).Slow
		}
		done.addIncrease(&q.Traffic, mark.find(i, q))
	}
	total := done.total()
	p.P50, p.P99 = done.quantile(total, 500), done.quantile(total, 990)
	return p
}
