package rdmareceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func withStageSpans(c *Config) { c.StageSpans = true }

func TestStageSpansGolden(t *testing.T) {
	events := eventsWith(t, withStageSpans, fullCompletion(), onRemoteNode(), bareCompletion())
	requireGoldenTraces(t, "stage-spans", buildTraces(events, theSurroundings()))
}

// The children of a span fill it from its start to its end, without a gap.
func TestStageSpansFillTheirParent(t *testing.T) {
	for name, c := range map[string]verbs.Completion{"four stages": fullCompletion(), "three stages": onRemoteNode()} {
		t.Run(name, func(t *testing.T) {
			e := eventsWith(t, withStageSpans, c)[0]
			require.NotEmpty(t, e.stages)
			at, seen := e.start, map[pcommon.SpanID]bool{e.spanID: true}
			for _, s := range e.stages {
				assert.Equal(t, at, s.start, s.stage)
				assert.Equal(t, c.Stages[s.stage], time.Duration(s.end-s.start), s.stage)
				assert.False(t, seen[s.spanID], "an id is used twice")
				at, seen[s.spanID] = s.end, true
			}
			assert.Equal(t, e.end, at)
		})
	}
}

func TestStageWithoutTimeHasNoSpan(t *testing.T) {
	c := fullCompletion()
	c.Stages[verbs.StageDevice] += c.Stages[verbs.StageQueue]
	c.Stages[verbs.StageQueue] = 0
	e := eventsWith(t, withStageSpans, c)[0]
	var stages []verbs.Stage
	for _, s := range e.stages {
		stages = append(stages, s.stage)
	}
	assert.Equal(t, []verbs.Stage{verbs.StagePost, verbs.StageDevice, verbs.StagePoll}, stages)
}

// Whatever the stages say, no child is longer than its parent.
func TestStageSpansNeverOverrun(t *testing.T) {
	c := fullCompletion()
	c.Stages[verbs.StageDevice] = time.Hour
	e := eventsWith(t, withStageSpans, c)[0]
	for _, s := range e.stages {
		assert.LessOrEqual(t, s.start, s.end)
		assert.LessOrEqual(t, s.end, e.end)
	}
}

// A batch that is delivered again keeps the ids that its spans had.
func TestStageSpansKeepTheirIDs(t *testing.T) {
	events := eventsWith(t, withStageSpans, fullCompletion())
	first, second := buildTraces(events, theSurroundings()), buildTraces(events, theSurroundings())
	assert.Equal(t, spanCount(events), first.SpanCount())
	spans, again := first.ResourceSpans().At(0).ScopeSpans().At(0).Spans(), second.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	for i := range spans.Len() {
		assert.Equal(t, spans.At(i).SpanID(), again.At(i).SpanID())
	}
}

func TestStageSpansAreAnOption(t *testing.T) {
	assert.Empty(t, eventsWith(t, func(*Config) {}, fullCompletion())[0].stages)
}
