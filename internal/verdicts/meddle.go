package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

// hog runs a busy program on the processor of the workload, and keeps the workload
// there.
func hog(ctx context.Context, workload *launch.Child) (func() error, error) {
	var one unix.CPUSet
	one.Set(0)
	if err := setAffinity(workload.PID, &one); err != nil {
		return nil, err
	}
	return runBeside(ctx, filepath.Join(outDirectory, "hog.log"),
		"nice", "-n", "-15", "taskset", "-c", "0", "sh", "-c", "while :; do :; done")
}

// runBeside runs a program until it is undone.
func runBeside(ctx context.Context, log string, words ...string) (undo func() error, err error) {
	beside, err := launch.Start(ctx, log, words[0], words[1:]...)
	if err != nil {
		return nil, err
	}
	return func() error {
		beside.Stop()
		_ = beside.Wait() // It ends by a signal.
		return nil
	}, nil
}

// setAffinity keeps all threads of a process on some processors.
func setAffinity(pid int, cpus *unix.CPUSet) error {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, cpus); err != nil {
			return fmt.Errorf("keep thread %d on a processor: %w", tid, err)
		}
	}
	return nil
}

// interrupt stops the workload for 20 ms, five times a second.
func interrupt(ctx context.Context, workload *launch.Child) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- stopAgain(ctx, workload.PID) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}

func stopAgain(ctx context.Context, pid int) error {
	for {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
		if err := unix.Kill(pid, unix.SIGCONT); err != nil {
			return err
		}
		if launch.Sleep(ctx, 180*time.Millisecond) != nil {
			return nil
		}
	}
}

// throttle puts the workload into a cgroup that may use a third of a processor.
func throttle(_ context.Context, workload *launch.Child) (func() error, error) {
	group, err := newQuota(workload.PID)
	if err != nil {
		return nil, err
	}
	return group.remove, nil
}
