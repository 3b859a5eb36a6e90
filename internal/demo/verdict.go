package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	// maxError is how far a measured duration may be from the true one.
	maxError = 0.05
	// clockError bounds how far apart the workload and the collector relate
	// CLOCK_MONOTONIC to wall-clock time, each for itself.
	clockError = 100 * time.Microsecond
)

// verdict compares what the collector exported with what the workload did.
type verdict struct {
	injected, seen int
	// other counts exported requests that were slow and are no spike,
	// unexplained those that were not slow, or on another queue.
	other, unexplained int
	// wrong counts spikes whose duration is wrong by more than maxError.
	wrong int
	// foreign counts exported requests of other processes.
	foreign int
	// errors are how far the duration of each seen spike is from the true one,
	// as a part of that.
	errors []float64
}

// judge finds, for each exported request, the true one.
func judge(truth truth, exported []slowRequest) verdict {
	var result verdict
	for _, request := range truth.slow {
		if request.spike() {
			result.injected++
		}
	}
	taken := make([]bool, len(truth.slow))
	for _, request := range exported {
		if request.PID != truth.pid {
			result.foreign++
			continue
		}
		i := find(truth.slow, taken, request)
		if i < 0 {
			result.unexplained++
			continue
		}
		taken[i] = true
		result.count(truth.slow[i], request)
	}
	return result
}

// find returns the index of the true request that the exported one is, -1 when
// there is none. The workload reads its clock outside the calls that are
// measured, so the true one, on the same queue, contains the exported one; of
// several it is the closest.
func find(slow []trueRequest, taken []bool, request slowRequest) int {
	best, bestExcess := -1, time.Duration(0)
	for i, candidate := range slow {
		if taken[i] || candidate.QP != request.QP || candidate.Device != request.Device {
			continue
		}
		before := request.Start.Sub(candidate.Posted)
		after := candidate.Delivered.Sub(request.End)
		if before < -clockError || after < -clockError {
			continue
		}
		excess := before.Abs() + after.Abs()
		if best < 0 || excess < bestExcess {
			best, bestExcess = i, excess
		}
	}
	return best
}

func (v *verdict) count(truth trueRequest, request slowRequest) {
	if !truth.spike() {
		v.other++
		return
	}
	v.seen++
	v.errors = append(v.errors, relativeError(request.Duration(), truth.Duration(), truth.Duration()))
	if relativeError(request.Duration(), truth.Delay, truth.Duration()) > maxError {
		v.wrong++
	}
}

// relativeError is how far d is from the range low to high, as a part of high.
// The true duration of a spike is that its device was told to delay it, at
// least, and the one by the workload's clock, at most: a workload that lost its
// processor read its clock late.
func relativeError(d, low, high time.Duration) float64 {
	return float64(max(low-d, d-high, 0)) / float64(high)
}

// err says what is wrong, nil when every spike was seen as it was.
func (v verdict) err() error {
	var problems []error
	if v.injected == 0 {
		problems = append(problems, errors.New("the workload injected no spike: give it more time with DEMO_SECONDS"))
	}
	if missing := v.injected - v.seen; missing > 0 {
		problems = append(problems, fmt.Errorf("%d of %d spikes were not exported on their queue: look in %s for what the collector lost, and whether so many requests were slow that max_exported_per_second in %s cut them off, as where other jobs keep the processors busy", missing, v.injected, inOut("collector.log"), configPath))
	}
	if v.wrong > 0 {
		problems = append(problems, fmt.Errorf("the durations of %d of %d spikes are wrong by more than %.0f %%", v.wrong, v.seen, 100*maxError))
	}
	if v.unexplained > 0 {
		problems = append(problems, fmt.Errorf("%d exported requests were not slow by the workload's own account", v.unexplained))
	}
	return errors.Join(problems...)
}

func (v verdict) print(out io.Writer) {
	fmt.Fprintf(out, "spikes injected      %d\n", v.injected)
	fmt.Fprintf(out, "spikes seen          %d, each on its device and queue pair\n", v.seen)
	if len(v.errors) > 0 {
		fmt.Fprintf(out, "their durations      within %.2f %% of the true ones in the median\n", 100*median(v.errors))
	}
	fmt.Fprintf(out, "other slow requests  %d, behind a spike or delayed by the scheduler of this machine\n", v.other)
	if v.foreign > 0 {
		fmt.Fprintf(out, "of other processes   %d, such as the short one that runs before the job\n", v.foreign)
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
