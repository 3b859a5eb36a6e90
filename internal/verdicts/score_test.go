package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestScore(t *testing.T) {
	injected := time.Now()
	says := func(cause, confidence string, after time.Duration) record {
		return record{cause: cause, confidence: confidence, came: injected.Add(after)}
	}
	hang := &scenario{name: "hang", names: []string{"hang"}}
	far := &scenario{name: "far", names: []string{"hang"}, says: "far"}
	healthy := &scenario{name: "healthy", names: []string{nothing}}
	for name, test := range map[string]struct {
		outcomes    []outcome
		right, lies float64
		worst       float64
		wrong       string
	}{
		"all right": {
			outcomes: []outcome{
				{scenario: hang, verdicts: []record{says("hang", "likely", 2*time.Second)}},
				{scenario: healthy},
			},
			right: 1, worst: 2,
		},
		"a guess that is wrong": {
			outcomes: []outcome{{scenario: hang, verdicts: []record{says("packet_loss", "possible", time.Second)}}},
			worst:    1, wrong: "1 of 1 were not named right at first, 0 may be",
		},
		"a lie, though it came second": {
			outcomes: []outcome{{scenario: hang, verdicts: []record{says("hang", "likely", 0), says("packet_loss", "likely", 0)}}},
			right:    1, lies: 1, wrong: "certain or likely, and wrong",
		},
		"an incident of nothing": {
			outcomes: []outcome{{scenario: healthy, verdicts: []record{says("unknown", "", 0)}}},
			wrong:    "not named right",
		},
		"what it has to say is not in it": {
			outcomes: []outcome{{scenario: far, verdicts: []record{says("hang", "likely", time.Second)}}},
			worst:    1, wrong: "not named right",
		},
		"what it has to say is in it": {
			outcomes: []outcome{{scenario: far, verdicts: []record{{cause: "hang", body: "It is far.", came: injected.Add(time.Second)}}}},
			right:    1, worst: 1,
		},
		"said before it hangs": {
			outcomes: []outcome{{scenario: hang, verdicts: []record{says("hang", "likely", -time.Second)}}},
			lies:     1, wrong: "not named right",
		},
		"guessed before it hangs": {
			outcomes: []outcome{{scenario: hang, verdicts: []record{says("hang", "possible", -time.Second)}}},
			wrong:    "not named right",
		},
		"nothing said of a hang": {outcomes: []outcome{{scenario: hang}}, wrong: "not named right"},
		"too late": {
			outcomes: []outcome{{scenario: hang, verdicts: []record{says("hang", "likely", 7*time.Second)}}},
			right:    1, worst: 7, wrong: "a verdict took 7.0 s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScore(1, 1)
			for i := range test.outcomes {
				test.outcomes[i].injected = injected
				s.add(&test.outcomes[i])
			}
			assert.InDelta(t, test.right, s.RightFirst, 1e-9)
			assert.InDelta(t, test.lies, s.ConfidentlyWrong, 1e-9)
			assert.InDelta(t, test.worst, s.WorstSeconds, 1e-9)
			if test.wrong == "" {
				assert.NoError(t, s.check())
			} else {
				assert.ErrorContains(t, s.check(), test.wrong)
			}
		})
	}
}

func TestRecordsOfALine(t *testing.T) {
	now := time.Now()
	records, err := parseRecords([]byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[
		{"eventName":"rdma.wqe.stuck"},
		{"eventName":"rdma.verdict","body":{"stringValue":"QP 0x1 on sim0"},"attributes":[
			{"key":"rdma.device.name","value":{"stringValue":"sim0"}},
			{"key":"rdma.slow.cause","value":{"stringValue":"hang"}},
			{"key":"rdma.verdict.confidence","value":{"stringValue":"likely"}},
			{"key":"rdma.incident.first_time","value":{"stringValue":"2026-01-02T03:04:05.5Z"}},
			{"key":"rdma.incident.last_time","value":{"stringValue":"2026-01-02T03:04:06Z"}},
			{"key":"rdma.incident.worst_duration","value":{"doubleValue":0.0035}},
			{"key":"rdma.incident.state","value":{"stringValue":"open"}}]},
		{"eventName":"rdma.verdict","attributes":[
			{"key":"rdma.slow.cause","value":{"stringValue":"unknown"}},
			{"key":"rdma.incident.first_time","value":{"stringValue":"2026-01-02T03:04:05Z"}},
			{"key":"rdma.incident.last_time","value":{"stringValue":"2026-01-02T03:04:06Z"}}]}]}]}]}`), now)
	assert.NoError(t, err)
	assert.Equal(t, []record{{
		device: "sim0", cause: "hang", confidence: "likely", state: "open", body: "QP 0x1 on sim0", worst: 3500 * time.Microsecond,
		began: time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC), ended: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), came: now,
	}, {
		cause: "unknown",
		began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ended: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), came: now,
	}}, records)

	_, err = parseRecords([]byte(`{`), now)
	assert.ErrorContains(t, err, "a line of logs")
	_, err = parseRecords([]byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"rdma.verdict"}]}]}]}`), now)
	assert.ErrorContains(t, err, "when the incident of a verdict began")
}

func TestPartsOfAnOutcome(t *testing.T) {
	injected := time.Now()
	early, late := record{cause: "unknown", began: injected.Add(-time.Second)}, record{cause: "application_late", began: injected}
	o := outcome{scenario: &scenario{names: []string{"application_late"}, before: "healthy"}, injected: injected, verdicts: []record{early, late}}

	parts := o.parts()
	assert.Len(t, parts, 2)
	assert.Equal(t, "healthy", parts[0].scenario.name)
	assert.Equal(t, []record{early}, parts[0].verdicts)
	assert.False(t, parts[0].scenario.sees(parts[0].first()), "an incident of sound traffic")
	assert.Equal(t, []record{late}, parts[1].verdicts)
	assert.True(t, parts[1].scenario.sees(parts[1].first()))

	o.scenario.before = ""
	assert.Equal(t, []*outcome{&o}, o.parts())
}

// What others on the machine did is no wrong verdict if the kernel says so too, of the
// time of the incident.
func TestDisturbance(t *testing.T) {
	began := time.Now()
	byOthers := record{cause: "poller_preempted", confidence: "certain", worst: 4 * time.Millisecond, began: began, ended: began.Add(time.Second)}
	busy := byOthers
	busy.cause = "poller_busy"
	for name, test := range map[string]struct {
		scenario scenario
		said     record
		// before, during and after the incident the workload waited so long.
		before, during, after time.Duration
		// injected is how long after the incident began.
		injected  time.Duration
		disturbed bool
	}{
		"preempted":              {said: byOthers, during: 3 * time.Millisecond, disturbed: true},
		"it was not":             {said: byOthers, during: time.Millisecond},
		"it was at another time": {said: byOthers, before: time.Second, during: time.Millisecond, after: time.Second},
		"something else":         {said: busy, during: 3 * time.Millisecond},
		"preempted by this":      {scenario: scenario{crowded: true}, said: byOthers, during: 3 * time.Millisecond},
		"preempted before this":  {scenario: scenario{crowded: true}, said: byOthers, during: 3 * time.Millisecond, injected: 2 * time.Second, disturbed: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &waits{seen: []waited{
				{began.Add(-2 * time.Second), 0},
				{began.Add(-time.Millisecond), test.before},
				{began.Add(time.Second + time.Millisecond), test.before + test.during},
				{began.Add(3 * time.Second), test.before + test.during + test.after},
			}}
			o := outcome{scenario: &test.scenario, injected: began.Add(test.injected)}
			o.hear([]record{test.said}, w)
			assert.Equal(t, test.disturbed, o.disturbed)
			assert.Equal(t, test.disturbed, len(o.verdicts) == 0)
		})
	}
}

func TestWaits(t *testing.T) {
	none := &waits{}
	assert.Zero(t, none.between(time.Time{}, time.Now()))

	asked := 0
	own := &waits{pid: os.Getpid()}
	assert.NoError(t, own.until(t.Context(), time.Now().Add(2*pollInterval), func() error { asked++; return nil }))
	assert.GreaterOrEqual(t, len(own.seen), 2)
	assert.Len(t, own.seen, asked)
	assert.GreaterOrEqual(t, own.between(time.Time{}, time.Now()), time.Duration(0))
	assert.Error(t, (&waits{pid: 1 << 30}).look())
}

// One miss of a dozen is no share, two are.
func TestMissesThatMayBe(t *testing.T) {
	for injections, most := range map[int]int{1: 0, 9: 0, 10: 1, 13: 1, 28: 1, 39: 1, 40: 2, 60: 3, 135: 6} {
		s := newScore(1, 1)
		hang := &scenario{name: "hang", names: []string{"hang"}}
		for i := range injections {
			o := &outcome{scenario: hang}
			if i >= most {
				o.verdicts = []record{{cause: "hang", came: o.injected}}
			}
			s.add(o)
		}
		assert.NoError(t, s.check(), injections)
		s.right--
		assert.ErrorContains(t, s.check(), "not named right", injections)
	}
}

// What is never named right is no chance, however much else is.
func TestScenarioThatIsNeverRight(t *testing.T) {
	s := newScore(2, 1)
	hang, lost := &scenario{name: "hang", names: []string{"hang"}}, &scenario{name: "lost", names: []string{"packet_loss"}}
	for range 60 {
		s.add(&outcome{scenario: hang, verdicts: []record{{cause: "hang"}}})
	}
	s.add(&outcome{scenario: lost})
	assert.NoError(t, s.check(), "it was played once")
	s.add(&outcome{scenario: lost})
	assert.ErrorContains(t, s.check(), "lost was never named right in 2 plays")
}
