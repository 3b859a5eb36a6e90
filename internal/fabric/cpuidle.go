package fabric

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"time"
)

// maxIdleStates is how many idle states a CPU has at the most (CPUIDLE_STATE_MAX of
// the kernel).
const maxIdleStates = 10

// IdleState is one idle state of a CPU (docs.kernel.org/admin-guide/pm/cpuidle.html).
type IdleState struct {
	// Name is what the driver calls it, such as "C6".
	Name string
	// Latency is how long the CPU needs to leave it.
	Latency time.Duration
	// Entered is how often it was entered so far.
	Entered uint64
}

// IdleStates returns the idle states of a logical CPU, the shallowest first; none
// where the kernel does not manage them, as in most virtual machines.
func (r *Reader) IdleStates(cpu uint32) ([]IdleState, error) {
	directory := filepath.Join(r.root, "devices", "system", "cpu", fmt.Sprintf("cpu%d", cpu), "cpuidle")
	var states []IdleState
	for i := range maxIdleStates {
		path := filepath.Join(directory, fmt.Sprintf("state%d", i))
		name, err := attribute(path, "name")
		if err != nil {
			break // There is no such state.
		}
		latency, latencyErr := idleNumber(path, "latency")
		entered, enteredErr := idleNumber(path, "usage")
		if latencyErr != nil || enteredErr != nil || latency > math.MaxInt64/uint64(time.Microsecond) {
			return nil, fmt.Errorf("read %s: latency and usage are not numbers", path)
		}
		states = append(states, IdleState{Name: name, Latency: time.Duration(latency) * time.Microsecond, Entered: entered})
	}
	return states, nil
}

func idleNumber(path, name string) (uint64, error) {
	text, err := attribute(path, name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}
