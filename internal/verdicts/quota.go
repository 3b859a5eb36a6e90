package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// quota is a cgroup with a limited share of a processor.
type quota struct{ path string }

// The quota: 30 ms of every 100 ms.
const (
	quotaMicroseconds  = 30_000
	periodMicroseconds = 100_000
)

// newQuota makes a cgroup, of version 2 where it has the cpu controller and else of
// version 1, and moves the process into it. The cgroup goes before others, as the
// process did: nothing but the quota is to hold it up.
func newQuota(pid int) (*quota, error) {
	name := fmt.Sprintf("verdicts-%d", pid)
	var failed []error
	for _, kind := range []struct {
		root   string
		limits map[string]string
	}{
		{"/sys/fs/cgroup", map[string]string{
			"cpu.max":    fmt.Sprintf("%d %d", quotaMicroseconds, periodMicroseconds),
			"cpu.weight": "10000",
		}},
		{"/sys/fs/cgroup/cpu", map[string]string{
			"cpu.cfs_period_us": strconv.Itoa(periodMicroseconds), "cpu.cfs_quota_us": strconv.Itoa(quotaMicroseconds),
			"cpu.shares": "262144",
		}},
	} {
		q := &quota{path: filepath.Join(kind.root, name)}
		err := q.make(kind.limits, pid)
		if err == nil {
			return q, nil
		}
		failed = append(failed, err)
		_ = os.Remove(q.path)
	}
	return nil, fmt.Errorf("no cgroup can limit a processor: %w", errors.Join(failed...))
}

func (q *quota) make(limits map[string]string, pid int) error {
	if err := os.Mkdir(q.path, 0o755); err != nil {
		return err
	}
	for file, value := range limits {
		if err := q.write(file, value); err != nil {
			return err
		}
	}
	return q.write("cgroup.procs", strconv.Itoa(pid))
}

// write does not create: a file that is missing is a controller that is missing.
func (q *quota) write(file, value string) error {
	f, err := os.OpenFile(filepath.Join(q.path, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// remove removes the cgroup, whose process must have been told to end.
func (q *quota) remove() error {
	var err error
	for range 100 {
		if err = os.Remove(q.path); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("remove the cgroup: %w", err)
}
