package rdmareceiver

import (
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestSlowSentence(t *testing.T) {
	request := verbs.WorkRequest{Operation: verbs.OpSend, Bytes: 4096, Device: "mlx5_0", Posted: 1000}
	for name, tc := range map[string]struct {
		change func(*verbs.Completion)
		want   string
	}{
		"slow": {
			func(c *verbs.Completion) { c.Busy, c.HasBusy = 10*time.Microsecond, true },
			"send of 4096 bytes on mlx5_0 took 1.235ms, 1.225ms more than the port was busy",
		},
		"the port's rate is not known": {
			func(*verbs.Completion) {}, "send of 4096 bytes on mlx5_0 took 1.235ms",
		},
		"failed": {
			func(c *verbs.Completion) { c.Status, c.VendorError = 12, 0x81 },
			"send of 4096 bytes on mlx5_0 failed after 1.235ms: retry_exc_err, vendor error 0x81",
		},
		"failed, of a size that is not known": {
			func(c *verbs.Completion) { c.Status, c.VendorError, c.Bytes = 12, 0x81, 0 },
			"send on mlx5_0 failed after 1.235ms: retry_exc_err, vendor error 0x81",
		},
		"slow without payload": {
			func(c *verbs.Completion) { c.Bytes = 0 }, "send of 0 bytes on mlx5_0 took 1.235ms",
		},
		"the device is not known": {
			func(c *verbs.Completion) { c.Device, c.Delivered = "", c.Posted+450_123 },
			"send of 4096 bytes took 450.123µs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := verbs.Completion{WorkRequest: request, Delivered: request.Posted + 1_234_567}
			tc.change(&c)
			if got := slowSentence(&c); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestStuckSentence(t *testing.T) {
	s := theStuck()
	s.Queue.QPNumber, s.Age = 17, 1_250_000_001*time.Nanosecond
	if got, want := stuckSentence(&s), "rdma_read of 65536 bytes on mlx5_0 has not completed for 1.25s, 3 outstanding on queue pair 0x11"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRounded(t *testing.T) {
	for d, want := range map[time.Duration]string{
		999 * time.Nanosecond:                "999ns",
		1_234_567 * time.Nanosecond:          "1.235ms",
		1_234_567_890 * time.Nanosecond:      "1.235s",
		999_999_400 * time.Microsecond:       "16m39.999s",
		1_000_499_000 * time.Microsecond:     "16m40s",
		100*time.Hour + 600*time.Millisecond: "100h0m1s",
	} {
		if got := rounded(d).String(); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}

func TestAsyncSentence(t *testing.T) {
	for want, event := range map[string]verbs.AsyncEvent{
		"port_error of port 1 on mlx5_1":            portDown(),
		"cq_error of completion queue 0 on mlx5_0":  overrun(),
		"qp_fatal of queue pair 0x1234 on mlx5_0":   fatalInKernel(),
		"device_fatal on mlx5_2":                    {Type: verbs.AsyncDeviceFatal, Device: "mlx5_2"},
		verbs.AsyncEventType(99).String() + " on a": {Type: 99, Device: "a"},
	} {
		if got := asyncSentence(&event); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
