package rdmareceiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestFloorSetterNeverMakesItsCallerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set []time.Duration
		var devices []string
		slow := newFloorSetter(func(device string, excess time.Duration) {
			time.Sleep(time.Second)
			set = append(set, excess)
			devices = append(devices, device)
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			slow.run()
		}()
		began := time.Now()
		slow.want("mlx5_0", 1)
		synctest.Wait()
		for excess := range time.Duration(100) {
			slow.want("mlx5_1", excess)
		}
		assert.Zero(t, time.Since(began))
		slow.close()
		<-done
		assert.Equal(t, []time.Duration{1, 99}, set, "the last one counts")
		assert.Equal(t, []string{"mlx5_0", "mlx5_1"}, devices, "each is set once")
	})
}

func TestReceiverRaisesTheFloorOfTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addTraces(r.traces)
		r.start()
		for range 1000 {
			r.engine.completions <- fullCompletion()
		}
		synctest.Wait()
		r.engine.mu.Lock()
		floor := r.engine.floors["mlx5_0"]
		r.engine.mu.Unlock()
		c := fullCompletion()
		assert.Equal(t, c.Excess(), floor)
		time.Sleep(time.Minute)
		r.shutdown()
		assert.Zero(t, r.engine.floors["mlx5_0"], "and lowers it again")
	})
}
