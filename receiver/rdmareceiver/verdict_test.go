package rdmareceiver

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// latePoller and rnr are causes that see what their names say.
func theCauses() []diagnose.Cause {
	return []diagnose.Cause{
		diagnose.Cause{Name: "late_poller", Title: "late poller", Remedy: "pin it", PerProcess: true, OffCPU: true}.JudgedBy(func(b *diagnose.Burst) diagnose.Judgement {
			share := b.Share(verbs.StagePoll)
			if share < 0.5 {
				return diagnose.Judgement{Missing: []string{"how the poller was scheduled"}}
			}
			return diagnose.Judgement{
				Confidence: diagnose.Likely, Explains: share,
				For: []diagnose.Evidence{{Name: "poll_share", Text: fmt.Sprintf("%.0f %% of the time was in stage poll", 100*share)}},
			}
		}),
		diagnose.Cause{Name: "retransmission", Title: "retransmission"}.JudgedBy(func(b *diagnose.Burst) diagnose.Judgement {
			if b.Share(verbs.StageDevice) > 0.9 {
				return diagnose.Judgement{Confidence: diagnose.Possible, Explains: 0.9, For: []diagnose.Evidence{{Name: "peer", Text: "to " + b.Slow[0].Path.RemoteAddress().String()}}}
			}
			return diagnose.Judgement{}
		}),
	}
}

// slowIn is a completion that was slow in one stage.
func slowIn(stage verbs.Stage, process verbs.ProcessID, qpn uint32) verbs.Completion {
	c := fullCompletion()
	c.Queue.Process, c.Queue.QPNumber = process, qpn
	c.Stages = [verbs.NumStages]time.Duration{}
	c.Stages[stage] = c.Duration()
	c.Known = 1 << stage
	return c
}

// slowAgain delivers as many completions as make an incident, one after the other.
func (r *rig) slowAgain(stage verbs.Stage, process verbs.ProcessID, qpn uint32) {
	for i := range uint64(incidentOccasions) {
		c := slowIn(stage, process, qpn)
		c.Posted += i * uint64(time.Millisecond)
		c.Delivered += i * uint64(time.Millisecond)
		r.engine.completions <- c
	}
}

// withCauses is a rig with all signals and with causes.
func withCauses(t *testing.T, changes ...func(*rig)) *rig {
	r := newRig(t)
	r.platform.causes = theCauses()
	for _, change := range changes {
		change(r)
	}
	r.factory = newFactory(r.platform)
	r.addTraces(r.traces)
	r.addLogs(r.logs)
	r.addMetrics(r.metrics)
	return r
}

func attributesOf(record plog.LogRecord) map[string]any { return record.Attributes().AsRaw() }

func TestSlowCompletionIsExportedWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withCauses(t)
		r.cfg.SlowLogs = true
		r.start()
		r.slowAgain(verbs.StagePoll, trainer, 0x18f2)
		r.slowAgain(verbs.StagePost, trainer, 0x77)
		time.Sleep(2 * time.Second)
		causes := map[string]int{}
		spans := r.traces.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		for i := range spans.Len() {
			raw := spans.At(i).Attributes().AsRaw()
			causes[fmt.Sprint(raw[attributeQPNumber], " ", raw[attributeSlowCause], " ", raw[attributeConfidence])]++
		}
		assert.Equal(t, map[string]int{"6386 late_poller likely": 3, "119 unknown <nil>": 3}, causes)
		assert.Len(t, recordsOf(r.logs, eventSlow), 6)
		for _, record := range recordsOf(r.logs, eventSlow) {
			assert.Contains(t, attributesOf(record), attributeSlowCause)
		}

		require.Len(t, recordsOf(r.logs, eventVerdict), 1, "the one without a cause is kept back")
		time.Sleep(incidentPatience)
		records := recordsOf(r.logs, eventVerdict)
		require.Len(t, records, 2)
		assert.Equal(t, "QP 0x18f2 on mlx5_0 (rank 9): up to 450 µs, 3 times in 2.5 ms. Cause: late poller (likely). For: 100 % of the time was in stage poll. Pin it.",
			records[0].Body().Str())
		raw := attributesOf(records[0])
		assert.Equal(t, "open", raw[attributeIncidentState])
		assert.EqualValues(t, 3, raw[attributeIncidentSlow])
		assert.Equal(t, []any{int64(0x18f2)}, raw[attributeIncidentQPs])
		assert.Len(t, raw[attributeIncidentSpans], 3)
		assert.Equal(t, plog.SeverityNumberWarn, records[0].SeverityNumber())
		worst := false
		for i := range spans.Len() {
			worst = worst || spans.At(i).SpanID() == records[0].SpanID()
		}
		assert.True(t, worst, "it leads to a span")
		assert.Equal(t, []any{"how the poller was scheduled"}, attributesOf(records[1])[attributeVerdictMissing])

		time.Sleep(15 * time.Second)
		r.shutdown()
		records = recordsOf(r.logs, eventVerdict)
		require.Len(t, records, 4, "both are closed, and told of no more")
		assert.Equal(t, plog.SeverityNumberInfo, records[2].SeverityNumber())
	})
}

// A request during which the poller was there is not put down to its absence, though
// others of the same queue pair and second are: it is of another cause, in all signals,
// and each is counted once.
func TestWhatACauseExcludesIsOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withCauses(t)
		r.start()
		synctest.Wait()
		spike := slowIn(verbs.StageDevice, trainer, 0x18f2)
		spike.Delivered += uint64(time.Minute)
		spike.Posted += uint64(time.Minute)
		all := loss{count: incidentOccasions + 1, excess: (incidentOccasions + 1) * spike.Excess()}
		r.engine.set(slowSnapshot(trainer, all), nil)
		r.slowAgain(verbs.StagePoll, trainer, 0x18f2)
		r.engine.completions <- spike
		time.Sleep(2 * time.Second)
		causes := map[any]int{}
		for _, cause := range causesOfSpans(r.traces.AllTraces()) {
			causes[cause]++
		}
		assert.Equal(t, map[any]int{"late_poller": incidentOccasions, "retransmission": 1}, causes)
		records := recordsOf(r.logs, eventVerdict)
		require.Len(t, records, 1, "one request is no incident")
		raw := attributesOf(records[0])
		assert.EqualValues(t, incidentOccasions, raw[attributeIncidentSlow])
		assert.Len(t, raw[attributeIncidentSpans], incidentOccasions, "it does not lead to the other's span")
		r.shutdown()
		late := loss{count: incidentOccasions, excess: incidentOccasions * spike.Excess()}
		assert.Equal(t, map[string]loss{"late_poller": late, "retransmission": all.minus(late), "unknown": {}}, lossesIn(t, r))
	})
}

// Whenever in a window something is slow, and however long the pipelines take,
// the verdict is out within five seconds.
func TestVerdictWithinFiveSeconds(t *testing.T) {
	for _, offset := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond, 999 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			r := withCauses(t)
			r.start()
			time.Sleep(7*time.Second + offset)
			began := time.Now()
			r.slowAgain(verbs.StagePoll, trainer, 1)
			for len(recordsOf(r.logs, eventVerdict)) == 0 {
				require.LessOrEqual(t, time.Since(began), 5*time.Second)
				time.Sleep(time.Millisecond)
			}
			assert.LessOrEqual(t, time.Since(began), 2*time.Second)
			synctest.Wait()
			assert.Equal(t, incidentOccasions, r.traces.SpanCount())
			r.shutdown()
		})
	}
}

// What is held when the collector ends is judged with what is known.
func TestShutdownJudgesWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withCauses(t)
		r.start()
		synctest.Wait()
		c := slowIn(verbs.StagePoll, trainer, 1)
		all := loss{count: incidentOccasions, excess: incidentOccasions * c.Excess()}
		r.engine.set(slowSnapshot(trainer, all), nil)
		r.slowAgain(verbs.StagePoll, trainer, 1)
		began := time.Now()
		r.shutdown()
		assert.Zero(t, time.Since(began))
		records := recordsOf(r.logs, eventVerdict)
		require.Len(t, records, 2)
		assert.Equal(t, "late_poller", attributesOf(records[0])[attributeSlowCause])
		assert.Equal(t, "closed", attributesOf(records[1])[attributeIncidentState])
		assert.Contains(t, records[1].Body().Str(), "No longer watched. ")
		assert.Equal(t, map[string]loss{"late_poller": all, "unknown": {}}, lossesIn(t, r))
	})
}

// An address that may not come out is not in the words of a cause either.
func TestPeersAreNotInVerdicts(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := withCauses(t)
			r.cfg.PeerAddresses = allowed
			r.start()
			r.slowAgain(verbs.StageDevice, trainer, 1)
			r.shutdown()
			out := otlp(t, r)
			if allowed {
				assert.Contains(t, out, "192.0.2.2")
			} else {
				assert.NotContains(t, out, "192.0.2.2")
			}
			assert.Contains(t, out, "retransmission")
		})
	}
}

func TestOpenIncidentsAreAMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withCauses(t)
		r.start()
		time.Sleep(7500 * time.Millisecond) // Neither begins or ends when metrics are collected.
		r.slowAgain(verbs.StagePoll, trainer, 1)
		r.slowAgain(verbs.StagePoll, peer, 1)
		time.Sleep(3 * time.Second)
		all := r.metrics.AllMetrics()
		points := values(all[len(all)-1], "rdma.active_incidents", attributeDevice, "mlx5_0", attributeSlowCause, "late_poller")
		require.Len(t, points, 1)
		assert.EqualValues(t, 2, points[0].IntValue(), "one in each process")

		time.Sleep(r.cfg.CollectionInterval)
		latest := func() []pmetric.NumberDataPoint {
			all := r.metrics.AllMetrics()
			return values(all[len(all)-1], "rdma.active_incidents")
		}
		require.Len(t, recordsOf(r.logs, eventVerdict), 4, "both are over")
		require.Len(t, latest(), 1)
		assert.Zero(t, latest()[0].IntValue())
		assert.False(t, latest()[0].Flags().NoRecordedValue(), "it returns to zero")
		time.Sleep(r.cfg.CollectionInterval)
		require.Len(t, latest(), 1)
		assert.True(t, latest()[0].Flags().NoRecordedValue(), "and ends")
		told := len(r.metrics.AllMetrics())
		time.Sleep(2 * r.cfg.CollectionInterval)
		assert.Len(t, r.metrics.AllMetrics(), told, "there is no more to tell")
		r.shutdown()
	})
}

// Looking at very many queues takes no more than its share, unless it matters.
func TestGlancesAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withCauses(t)
		r.engine.glanceTakes = 100 * time.Millisecond
		r.start()
		time.Sleep(50500 * time.Millisecond)
		synctest.Wait()
		assert.InDelta(t, 10, r.engine.glances, 1, "one in five seconds")
		before := r.engine.glances
		for range 10 {
			r.engine.completions <- slowIn(verbs.StagePoll, trainer, 1)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		assert.InDelta(t, 10, r.engine.glances-before, 1, "each second while something is slow")
		r.shutdown()
	})
}

// A request or two on a busy machine are exported with their cause, and counted, and
// are no incident.
func TestLittleIsNoIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withCauses(t)
		r.start()
		for range 3 {
			r.engine.completions <- slowIn(verbs.StagePoll, trainer, 1) // All at the same time.
		}
		time.Sleep(10 * time.Second)
		assert.Equal(t, 3, r.traces.SpanCount())
		raw := r.traces.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()
		assert.Equal(t, "late_poller", raw[attributeSlowCause])
		r.shutdown()
		assert.Empty(t, recordsOf(r.logs, eventVerdict))
	})
}

// A span that found no room on the way to its pipeline is not one to look for.
func TestVerdictLeadsToNoSpanThatWasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.platform.causes = theCauses()
		r.factory = newFactory(r.platform)
		r.addTraces(stuckTraces{consumertest.NewNop()})
		r.addLogs(r.logs)
		r.start()
		betweenTicks()
		for range eventQueue + 2 {
			r.engine.completions <- slowIn(verbs.StagePoll, trainer, 1)
			time.Sleep(time.Second)
		}
		r.slowAgain(verbs.StagePoll, peer, 1)
		time.Sleep(2 * time.Second)
		records := recordsOf(r.logs, eventVerdict)
		first, last := records[0], records[len(records)-1]
		assert.False(t, first.TraceID().IsEmpty())
		assert.NotEmpty(t, attributesOf(first)[attributeIncidentSpans])
		require.EqualValues(t, peer.TGID, attributesOf(last)["process.pid"])
		assert.True(t, last.TraceID().IsEmpty() && last.SpanID().IsEmpty())
		assert.NotContains(t, attributesOf(last), attributeIncidentSpans)
		r.shutdown()
	})
}

// However far behind the judging is, the last window closes the incidents.
func TestLastWindowIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session{windows: make(chan window, 1)}
		s.pass(window{})
		passed := make(chan struct{})
		go func() {
			s.pass(window{last: true})
			close(passed)
		}()
		synctest.Wait()
		assert.False(t, (<-s.windows).last)
		assert.True(t, (<-s.windows).last)
		<-passed
	})
}
