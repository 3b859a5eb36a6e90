package process

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Throttling is what CPU quotas have held a process up, since its control groups were
// made: two readings give what happened between them.
type Throttling struct {
	// Count is how many periods of the quota (cpu.cfs_period_us, 100 ms most often)
	// ended early because the quota was used up.
	Count uint64
	// Time is how long the group had no CPU for it, summed over the CPUs that its
	// threads were on, and over the groups where several have a quota.
	Time time.Duration
}

const (
	// cpuStatLimit bounds cpu.stat: some 10 lines.
	cpuStatLimit = 4 << 10
	// deepestGroup is how many groups within each other are looked at.
	deepestGroup = 64
)

// cpuGroup is where the groups of a process that limit its CPU time are.
type cpuGroup struct {
	// mounts are where the hierarchy may be, below the root of all.
	mounts []string
	path   string
}

// Throttling reads what the quota of the process's control group held up, and those
// of the groups around it, which bind it too. groups is where the control groups are
// mounted, /sys/fs/cgroup on the host: both versions, see cgroups(7).
//
// A group without a quota adds nothing. The error wraps ErrGone when the process has
// exited.
func (r *Reader) Throttling(groups string, pid int) (Throttling, error) {
	t, err := r.throttling(groups, pid)
	if err != nil {
		return Throttling{}, fmt.Errorf("read the CPU quota of process %d under %s: %w", pid, groups, err)
	}
	return t, nil
}

func (r *Reader) throttling(groups string, pid int) (Throttling, error) {
	dir, err := openProcess(r.root, pid)
	if err != nil {
		return Throttling{}, err
	}
	defer dir.Close()
	text, err := readSome(dir, "cgroup", cgroupLimit+1)
	switch {
	case vanished(err):
		return Throttling{}, fmt.Errorf("%w: %w", ErrGone, err)
	case err != nil:
		return Throttling{}, err
	case len(text) > cgroupLimit:
		return Throttling{}, fmt.Errorf("its control groups take more than %d bytes", cgroupLimit)
	}
	group, err := parseCPUGroup(string(text))
	if err != nil {
		return Throttling{}, err
	}
	root, err := os.OpenRoot(groups)
	if err != nil {
		return Throttling{}, err
	}
	defer root.Close()
	return group.throttling(processDir{root: root})
}

// parseCPUGroup finds the group with the controller cpu in /proc/PID/cgroup: in a
// hierarchy of version 1 if one has it, else in the unified one.
func parseCPUGroup(text string) (cpuGroup, error) {
	var unified, first *cpuGroup
	for line := range strings.Lines(text) {
		hierarchy, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, name, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case hierarchy == "0" && controllers == "":
			unified = &cpuGroup{[]string{"."}, name}
		case slices.Contains(strings.Split(controllers, ","), "cpu"):
			first = &cpuGroup{[]string{controllers, "cpu"}, name}
		}
	}
	group := first
	if group == nil {
		group = unified
	}
	if group == nil {
		return cpuGroup{}, errors.New("it is in no control group for CPU time")
	}
	return *group, group.check()
}

// check refuses paths that lead elsewhere than to a group below the mount.
func (g *cpuGroup) check() error {
	if !strings.HasPrefix(g.path, "/") || path.Clean(g.path) != g.path || slices.Contains(g.components(), "..") {
		return fmt.Errorf("the control group %.200q is not below the root that is mounted here", g.path)
	}
	if len(g.components()) > deepestGroup {
		return fmt.Errorf("the control group is more than %d groups deep", deepestGroup)
	}
	if strings.Contains(g.mounts[0], "/") || strings.HasPrefix(g.mounts[0], "..") {
		return fmt.Errorf("%.200q are not names of controllers", g.mounts[0])
	}
	return nil
}

func (g *cpuGroup) components() []string {
	return strings.FieldsFunc(g.path, func(c rune) bool { return c == '/' })
}

// throttling adds up from the group to the root.
func (g *cpuGroup) throttling(root files) (sum Throttling, err error) {
	found := false
	for name := g.path; ; name = path.Dir(name) {
		one, err := g.readStat(root, name)
		switch {
		case err == nil:
			found = true
			sum.Count += one.Count
			sum.Time += min(one.Time, math.MaxInt64-sum.Time)
		case !errors.Is(err, fs.ErrNotExist):
			return Throttling{}, fmt.Errorf("control group %.200q: %w", name, err)
		}
		if name == "/" {
			break
		}
	}
	if !found {
		return Throttling{}, fmt.Errorf("control group %.200q: no cpu.stat there nor above: %w", g.path, fs.ErrNotExist)
	}
	return sum, nil
}

// readStat reads cpu.stat of one group. The root of either version may have none.
func (g *cpuGroup) readStat(root files, name string) (t Throttling, err error) {
	var text []byte
	for _, mount := range g.mounts {
		text, err = readSome(root, path.Join(mount, name, "cpu.stat"), cpuStatLimit)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return Throttling{}, err
	}
	return parseCPUStat(string(text))
}

// parseCPUStat parses the lines "name value" of cpu.stat: nr_throttled, with
// throttled_usec in version 2 and throttled_time, in nanoseconds, in version 1. They
// are missing where no quota can be set.
func parseCPUStat(text string) (t Throttling, err error) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		unit := uint64(1)
		switch name {
		case "throttled_usec":
			unit = uint64(time.Microsecond)
		case "throttled_time", "nr_throttled":
		default:
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return Throttling{}, fmt.Errorf("parse cpu.stat: %.40q is not a number", value)
		}
		if name == "nr_throttled" {
			t.Count = n
			continue
		}
		t.Time = time.Duration(min(n, math.MaxInt64/unit) * unit)
	}
	return t, nil
}
