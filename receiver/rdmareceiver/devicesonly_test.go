package rdmareceiver

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

// withoutTracing makes tracing fail, on a host with these devices.
func withoutTracing(r *rig, devices *handDevices) {
	p := handPlatform(r.engine)
	p.startEngine = func(context.Context, engineConfig) (engine, error) { return nil, errNoBPF }
	p.openHost = func(string, *slog.Logger) (host, error) {
		h := theHost()
		h.watchDevices = func(_, _ func(string) bool) deviceSource { return devices }
		return h, nil
	}
	r.factory = newFactory(p)
}

// Without a privilege that tracing needs the state of the devices is exported
// all the same.
func TestDevicesWithoutTracing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		withoutTracing(r, &handDevices{})
		r.addMetrics(r.metrics)
		r.start()
		time.Sleep(35 * time.Second)
		r.shutdown()
		assert.Equal(t, componentstatus.StatusPermanentError, r.host.last().Status())
		assert.Len(t, timesUp(r.metrics.AllMetrics()), 3)
	})
}

func TestDevicesWithoutTracingAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		devices := &handDevices{}
		withoutTracing(r, devices)
		r.addMetrics(consumertest.NewErr(errRefused))
		r.start()
		time.Sleep(35 * time.Second)
		r.shutdown()
		require.EqualValues(t, 3, devices.taken.Load(), "a pipeline that takes nothing ends nothing")
	})
}
