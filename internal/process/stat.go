package process

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// statLimit bounds /proc/PID/stat; the kernel writes some 52 numbers.
const statLimit = 4 << 10

// tick is the unit of times in /proc: USER_HZ is 100 on every architecture
// this project builds for.
const tick = 10 * time.Millisecond

// maxTicks is the longest uptime that fits a time.Duration, 292 years.
const maxTicks = uint64(math.MaxInt64 / int64(tick))

// Field numbers of proc_pid_stat(5), counted from the one after the comm.
const (
	afterComm      = 3
	fieldState     = 3 - afterComm
	fieldThreads   = 20 - afterComm
	fieldStartTime = 22 - afterComm
	fieldProcessor = 39 - afterComm
	fieldEnvStart  = 50 - afterComm
)

// stat is what is needed of /proc/PID/stat.
type stat struct {
	comm  string
	state byte
	// threads is how many the process has, 0 when that cannot be read.
	threads    uint64
	startTicks uint64
	// processor is the CPU that it ran on last, -1 when that is not told.
	processor int
	// envStart is the address of the environment, new with each execve; 0
	// when the reader may not know it.
	envStart uint64
}

func readStat(dir files) (stat, error) {
	text, err := readSome(dir, "stat", statLimit)
	if vanished(err) {
		return stat{}, fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err != nil {
		return stat{}, err
	}
	return parseStat(text)
}

// parseStat parses /proc/PID/stat. The comm may hold any byte, brackets and
// newlines included, so it ends at the last closing bracket.
func parseStat(text []byte) (stat, error) {
	start, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if start < 0 || end < start {
		return stat{}, errors.New("parse stat: no comm in brackets")
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) <= fieldStartTime || len(fields[fieldState]) != 1 {
		return stat{}, fmt.Errorf("parse stat: %d fields after the comm, want at least %d", len(fields), fieldStartTime+1)
	}
	ticks, err := strconv.ParseUint(string(fields[fieldStartTime]), 10, 64)
	if err != nil || ticks > maxTicks {
		return stat{}, errors.New("parse stat: the start time is not a number of clock ticks")
	}
	parsed := stat{
		comm:       string(text[start+1 : end]),
		state:      fields[fieldState][0],
		startTicks: ticks,
		processor:  -1,
	}
	if len(fields) > fieldProcessor {
		if cpu, err := strconv.ParseUint(string(fields[fieldProcessor]), 10, 31); err == nil {
			parsed.processor = int(cpu)
		}
	}
	parsed.threads, _ = strconv.ParseUint(string(fields[fieldThreads]), 10, 64)
	if len(fields) > fieldEnvStart {
		parsed.envStart, _ = strconv.ParseUint(string(fields[fieldEnvStart]), 10, 64)
	}
	return parsed, nil
}

func (s stat) startTime(boot time.Time) time.Time {
	return boot.Add(time.Duration(s.startTicks) * tick)
}

// exiting says that the process has given up its memory, with which its
// environment and executable went: they then read as empty, not as an error.
func (s stat) exiting() error {
	switch s.state {
	case 'Z', 'X', 'x':
		return errors.New("environment and executable: the process is exiting")
	default:
		return nil
	}
}
