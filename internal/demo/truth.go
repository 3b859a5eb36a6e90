package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// truth is what the workload says of itself.
type truth struct {
	pid int64
	// slow is everything that took long, the spikes first.
	slow []trueRequest
}

// trueRequest is one work request that took long, as the workload that posted
// it knows it: from just before the call that posted it to just after the poll
// that delivered its completion, by its own clock.
type trueRequest struct {
	Device            string
	QP                uint32
	Posted, Delivered time.Time
	// Delay is by how much the workload had its device delay it, 0 for those
	// that took long by themselves.
	Delay time.Duration
}

func (r trueRequest) spike() bool { return r.Delay > 0 }

// Duration is the time from post to completion.
func (r trueRequest) Duration() time.Duration { return r.Delivered.Sub(r.Posted) }

// The part of the workload's account that is read here; see internal/verbsim.
type truthFile struct {
	PID int64 `json:"pid"`
	// RealtimeOffset turns CLOCK_MONOTONIC into wall-clock time, nanoseconds.
	RealtimeOffset int64 `json:"monotonic_to_realtime_offset_ns"`
	// Slow lists what took long, the spikes among them, unless there were too
	// many; SlowTotal counts them all.
	Slow      []truthFileItem `json:"slow"`
	SlowTotal int             `json:"slow_total"`
	Spikes    []struct {
		truthFileItem
		Delay int64 `json:"delay_ns"`
	} `json:"spikes"`
}

type truthFileItem struct {
	Device    string `json:"device"`
	QPNumber  uint32 `json:"qp_num"`
	Posted    int64  `json:"post_ns"`
	Delivered int64  `json:"completion_ns"`
}

// readTruth returns everything that took long.
func readTruth(path string) (truth, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return truth{}, fmt.Errorf("the workload left no account of itself: %w", err)
	}
	var file truthFile
	if err := json.Unmarshal(text, &file); err != nil {
		return truth{}, fmt.Errorf("%s: %w", path, err)
	}
	if len(file.Slow) < file.SlowTotal {
		return truth{}, fmt.Errorf("%s lists %d of %d slow requests: this machine is too slow for the demonstration", path, len(file.Slow), file.SlowTotal)
	}
	return truth{pid: file.PID, slow: file.requests()}, nil
}

// requests are the spikes and what else was slow, each once.
func (f truthFile) requests() []trueRequest {
	var requests []trueRequest
	spikes := make(map[truthFileItem]bool)
	for _, spike := range f.Spikes {
		spikes[spike.truthFileItem] = true
		requests = append(requests, f.request(spike.truthFileItem, spike.Delay))
	}
	for _, item := range f.Slow {
		if !spikes[item] {
			requests = append(requests, f.request(item, 0))
		}
	}
	return requests
}

func (f truthFile) request(item truthFileItem, delay int64) trueRequest {
	return trueRequest{
		Device:    item.Device,
		QP:        item.QPNumber,
		Posted:    time.Unix(0, item.Posted+f.RealtimeOffset),
		Delivered: time.Unix(0, item.Delivered+f.RealtimeOffset),
		Delay:     time.Duration(delay),
	}
}
