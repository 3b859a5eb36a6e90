package rdmareceiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// More queue pairs than may be held are exported all the same, as unknown.
func TestWhatIsNotHeldIsExportedAsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withCauses(t, func(r *rig) { r.telemetry = componenttest.NewTelemetry() })
		r.start()
		synctest.Wait()
		for qpn := range uint32(maxHeldQueues) {
			r.engine.completions <- slowIn(verbs.StagePoll, trainer, qpn+1)
		}
		late := slowIn(verbs.StagePoll, trainer, 0xffff)
		late.Delivered += uint64(time.Second)
		r.engine.completions <- late
		failed := fullCompletion()
		failed.Queue.QPNumber, failed.Status, failed.Delivered = 0x10000, 12, failed.Posted+1
		r.engine.completions <- failed
		stuck := theStuck()
		stuck.Queue.QPNumber = 0x10001
		r.engine.stuck <- stuck
		time.Sleep(2 * time.Second)
		assert.Equal(t, map[string]float64{unjudgedFull: 3}, told(t, r.telemetry, "rdma_unjudged", "reason"))
		r.shutdown()
		require.NoError(t, r.telemetry.Shutdown(t.Context()))
		spans := r.traces.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		raw := spans.At(0).Attributes().AsRaw()
		assert.EqualValues(t, 0x10000, raw[attributeQPNumber], "what failed comes first")
		raw = spans.At(1).Attributes().AsRaw()
		assert.EqualValues(t, 0xffff, raw[attributeQPNumber], "then the slowest")
		assert.Equal(t, causeUnknown, raw[attributeSlowCause])
	})
}

// Occasions are counted of what was late, by more than a port may be known wrongly.
func TestOccasions(t *testing.T) {
	us := time.Microsecond
	type late struct{ delivered, excess, busy time.Duration }
	for name, test := range map[string]struct {
		late      []late
		occasions uint64
		lasted    time.Duration
	}{
		"one after the other":                {[]late{{1000 * us, 100 * us, 0}, {1100 * us, 100 * us, 0}, {1300 * us, 100 * us, 0}}, 3, 300 * us},
		"at the same time":                   {[]late{{1000 * us, 400 * us, 0}, {1001 * us, 300 * us, 0}, {1001 * us, 200 * us, 0}}, 1, 401 * us},
		"a chain":                            {[]late{{1000 * us, 400 * us, 0}, {1200 * us, 400 * us, 0}, {1400 * us, 400 * us, 0}}, 1, 800 * us},
		"not slow":                           {[]late{{1000 * us, 50 * us, 0}}, 0, 0},
		"a saturated port":                   {[]late{{1000 * us, 100 * us, 900 * us}}, 0, 0},
		"a busy port, and late all the same": {[]late{{1000 * us, 300 * us, 700 * us}}, 1, 300 * us},
	} {
		t.Run(name, func(t *testing.T) {
			b := &held{stride: 1}
			for _, l := range test.late {
				c := fullCompletion()
				c.Busy = l.busy
				c.Posted = c.Delivered + uint64(l.delivered-l.excess-l.busy)
				c.Delivered += uint64(l.delivered)
				b.count(&c)
			}
			assert.Equal(t, test.occasions, b.occasions)
			assert.Equal(t, test.lasted, b.late)
		})
	}
	b := &held{stride: 1}
	for _, status := range []verbs.Status{verbs.StatusWRFlushErr, verbs.StatusWRFlushErr, 12} {
		c := fullCompletion()
		c.Status = status
		b.count(&c)
	}
	assert.EqualValues(t, 1, b.failed)
	assert.Zero(t, b.occasions)
}

func TestHolderKeepsASample(t *testing.T) {
	h := newHolder()
	for i := range uint64(1000) {
		c := slowIn(verbs.StagePoll, trainer, 1)
		c.WRID = i
		h.hold(&c)
	}
	bursts, refused := h.take()
	require.Len(t, bursts, 1)
	b := bursts[0]
	assert.Zero(t, refused)
	assert.EqualValues(t, 1000, b.reported)
	assert.Equal(t, 1000*b.slow[0].Excess(), b.lost)
	assert.Greater(t, len(b.slow), maxHeldOfQueue/2-1)
	for i, c := range b.slow {
		assert.Equal(t, uint64(i)*b.stride, c.WRID, "one of every so many, in order")
	}
	bursts, _ = h.take()
	assert.Empty(t, bursts)
}

// The parts of a burst are what it was, and one that cannot be parted stays whole.
func TestDivide(t *testing.T) {
	odd := func(c *verbs.Completion) bool { return c.WRID%2 == 1 }
	burst := func(n int, changes ...func(*holder)) *held {
		h := newHolder()
		for i := range uint64(n) {
			c := slowIn(verbs.StagePoll, trainer, 1)
			c.WRID, c.Posted, c.Delivered = i, c.Posted+i*1000, c.Delivered+i*3000
			if i%3 == 0 {
				c.Status = verbs.StatusWRFlushErr
			}
			h.hold(&c)
		}
		for _, change := range changes {
			change(h)
		}
		return h.order[0]
	}
	b := burst(11)
	rest, apart := b.divide(odd)
	require.NotNil(t, apart)
	assert.EqualValues(t, 6, rest.reported)
	assert.EqualValues(t, 5, apart.reported)
	assert.Equal(t, b.over, rest.over+apart.over)
	assert.Equal(t, b.lost, rest.lost+apart.lost)
	assert.Equal(t, b.overLost, rest.overLost+apart.overLost)
	assert.Equal(t, b.worst, max(rest.worst, apart.worst))
	assert.Equal(t, b.first, min(rest.first, apart.first))
	assert.Equal(t, b.last, max(rest.last, apart.last))
	for stage := range b.stages {
		assert.Equal(t, b.stages[stage], rest.stages[stage]+apart.stages[stage])
	}

	stuck := burst(4, func(h *holder) {
		h.holdStuck(&verbs.Stuck{WorkRequest: slowIn(verbs.StagePoll, trainer, 1).WorkRequest})
	})
	for name, whole := range map[string]struct {
		*held
		out func(*verbs.Completion) bool
	}{
		"stuck":        {stuck, odd},
		"a sample":     {burst(maxHeldOfQueue + 1), odd},
		"none of them": {burst(4), func(*verbs.Completion) bool { return false }},
		"all of them":  {burst(4), func(*verbs.Completion) bool { return true }},
	} {
		rest, apart := whole.divide(whole.out)
		assert.Nil(t, apart, name)
		assert.Same(t, whole.held, rest, name)
	}
}
