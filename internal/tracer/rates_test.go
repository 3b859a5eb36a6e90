package tracer

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Firmware that hangs holds up one goroutine, however often its rate is needed.
func TestRateOfADeviceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan float64)
		var hanging, changes atomic.Int32
		r := newRates(func(device string) (float64, bool) {
			if device == "mlx5_1" {
				return 25e9, true
			}
			hanging.Add(1)
			return <-answer, true
		}, func() { changes.Add(1) })
		began := time.Now()
		for range 100 {
			if _, known := r.of("mlx5_0"); known {
				t.Fatal("a rate that nobody told")
			}
			time.Sleep(rateAge)
		}
		if took := time.Since(began); took != 100*rateAge {
			t.Errorf("asking waited %s", took-100*rateAge)
		}
		if n := hanging.Load(); n != 1 {
			t.Errorf("%d goroutines hang", n)
		}
		r.of("mlx5_1")
		synctest.Wait()
		if rate, known := r.of("mlx5_1"); !known || rate != 25e9 {
			t.Errorf("the rate of the other device is %g, %t", rate, known)
		}
		answer <- 50e9
		synctest.Wait()
		if rate, known := r.of("mlx5_0"); !known || rate != 50e9 {
			t.Errorf("after the answer: %g, %t", rate, known)
		}
		if n := changes.Load(); n != 2 {
			t.Errorf("%d changes were told, not 2", n)
		}
		// It was asked again for the answer is old.
		answer <- 50e9
		synctest.Wait()
	})
}

func TestRatesAreAskedNowAndThen(t *testing.T) {
	for _, known := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			asked, changes := 0, 0
			r := newRates(func(string) (float64, bool) {
				asked++
				return 0, known
			}, func() { changes++ })
			for range 60 {
				r.of("mlx5_0")
				synctest.Wait()
				time.Sleep(time.Second)
			}
			// One that is not known may be so in a moment.
			if want := map[bool]int{true: 12, false: 60}[known]; asked != want {
				t.Errorf("known: %t: asked %d times in a minute, want %d", known, asked, want)
			}
			if want := map[bool]int{true: 1, false: 0}[known]; changes != want {
				t.Errorf("known: %t: %d changes, want %d", known, changes, want)
			}
		})
	}
}
