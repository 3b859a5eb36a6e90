//go:build backends

package rules

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/alertmanager/alert"
	"github.com/prometheus/alertmanager/config"
	"github.com/prometheus/alertmanager/dispatch"
	"github.com/prometheus/alertmanager/eventrecorder"
	"github.com/prometheus/alertmanager/featurecontrol"
	"github.com/prometheus/alertmanager/inhibit"
	"github.com/prometheus/alertmanager/marker"
	"github.com/prometheus/alertmanager/nflog"
	"github.com/prometheus/alertmanager/notify"
	"github.com/prometheus/alertmanager/provider/mem"
	"github.com/prometheus/alertmanager/silence"
	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/alertmanager/timeinterval"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/notifier"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notification is one message to a receiver.
type notification struct {
	after    time.Duration
	receiver string
	// firing has the names of the alerts that it tells of, and how many of each.
	firing map[string]int
}

// inbox is the receivers of a configuration.
type inbox struct {
	mu  sync.Mutex
	all []notification
}

// mailbox is one receiver. What is over is not sent to it.
type mailbox struct {
	name string
	in   *inbox
}

// Notify implements notify.Notifier.
func (m mailbox) Notify(_ context.Context, alerts ...*alert.Alert) (bool, error) {
	n := notification{after: time.Since(start), receiver: m.name, firing: map[string]int{}}
	for _, a := range alerts {
		n.firing[a.Name()]++
	}
	m.in.mu.Lock()
	defer m.in.mu.Unlock()
	m.in.all = append(m.in.all, n)
	return false, nil
}

// SendResolved implements notify.ResolvedSender.
func (mailbox) SendResolved() bool { return false }

// shipped is the configuration of Alertmanager that ships.
func shipped(t *testing.T) *config.Config {
	t.Helper()
	conf, err := config.LoadFile(directory + "/alertmanager.yml")
	require.NoError(t, err)
	return conf
}

// notifications plays what Prometheus sent to Alertmanager, in the time of a
// synctest bubble, and returns what its receivers are sent until then.
func notifications(t *testing.T, conf *config.Config, all []delivery, until time.Duration) []notification {
	t.Helper()
	in := &inbox{}
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, start, time.Now().UTC())
		alerts := startAlertmanager(t, conf, in)
		for _, d := range all {
			time.Sleep(time.Until(start.Add(d.after)))
			require.NoError(t, alerts.Put(t.Context(), received(d.alerts)...))
		}
		time.Sleep(time.Until(start.Add(until)))
	})
	return in.all
}

// received is alerts as they come out of Alertmanager's API, with the external label
// that Prometheus adds on the way.
func received(sent []*notifier.Alert) []*alert.Alert {
	var all []*alert.Alert
	for _, a := range sent {
		set := model.LabelSet{"cluster": "example"}
		for name, value := range a.Labels.Map() {
			set[model.LabelName(name)] = model.LabelValue(value)
		}
		all = append(all, &alert.Alert{Alert: model.Alert{Labels: set, StartsAt: a.StartsAt, EndsAt: a.EndsAt}, UpdatedAt: time.Now()})
	}
	return all
}

// startAlertmanager puts the parts of Alertmanager together as its program does,
// without its API and its cluster, until the end of the test.
func startAlertmanager(t *testing.T, conf *config.Config, in *inbox) *mem.Alerts {
	t.Helper()
	log, registry, recorder := slog.New(slog.DiscardHandler), prometheus.NewRegistry(), eventrecorder.NopRecorder()
	groups := marker.NewGroupMarker()
	done, err := nflog.New(nflog.Options{Retention: 120 * time.Hour, Logger: log, Metrics: registry})
	require.NoError(t, err)
	silences, err := silence.New(silence.Options{Retention: 120 * time.Hour, Logger: log, Metrics: registry, EventRecorder: recorder})
	require.NoError(t, err)
	templates, err := template.FromGlobs(nil)
	require.NoError(t, err)
	alerts, err := mem.NewAlerts(t.Context(), 30*time.Minute, 0, nil, log, recorder, registry, featurecontrol.NoopFlags{})
	require.NoError(t, err)
	t.Cleanup(alerts.Close)

	receivers := map[string][]notify.Integration{}
	for _, r := range conf.Receivers {
		box := mailbox{name: r.Name, in: in}
		receivers[r.Name] = []notify.Integration{notify.NewIntegration(box, box, "mailbox", 0, r.Name)}
	}
	inhibitor := inhibit.NewInhibitor(alerts, conf.InhibitRules, log, recorder)
	go inhibitor.Run()
	t.Cleanup(inhibitor.Stop)
	inhibitor.WaitForLoading()
	alone := func() time.Duration { return 0 }
	pipeline := notify.NewPipelineBuilder(registry, featurecontrol.NoopFlags{}, recorder).New(
		receivers, alone, inhibitor, silence.NewSilencer(silences, log, recorder),
		timeinterval.NewIntervener(nil), groups, done, nil)
	timeout := func(d time.Duration) time.Duration { return max(d, notify.MinTimeout) }
	dispatcher := dispatch.NewDispatcher(alerts, dispatch.NewRoute(conf.Route, nil), pipeline, groups, timeout,
		30*time.Second, nil, log, recorder, nil, templates)
	go dispatcher.Run(time.Now())
	t.Cleanup(dispatcher.Stop)
	dispatcher.WaitForLoading()
	return alerts
}

// to returns what one receiver was sent.
func to(all []notification, receiver string) []notification {
	var of []notification
	for _, n := range all {
		if n.receiver == receiver {
			of = append(of, n)
		}
	}
	return of
}

func TestReceiversOfTheExampleAreThoseOfItsRoutes(t *testing.T) {
	conf := shipped(t)
	assert.Equal(t, "tickets", conf.Route.Receiver)
	for _, route := range conf.Route.Routes {
		assert.Equal(t, "pager", route.Receiver)
	}
}
