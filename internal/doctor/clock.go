package doctor

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// muchError is an error of the clock with which the order of spans of two nodes says
// little.
const muchError = 100 * time.Millisecond

// clockFacts are what the kernel says of its clocks.
type clockFacts struct {
	// synchronised says that a program that disciplines the clock has said so; maxError is
	// how far off it is at the most, estimated how far it is thought to be.
	synchronised        bool
	maxError, estimated time.Duration
	// source is the clock source, such as "tsc".
	source string
	// boot is when the monotonic clock was 0, by the wall clock; uncertain is how far off
	// that may be.
	boot      time.Time
	uncertain time.Duration
}

func (s *System) checkClock(context.Context) []Finding {
	f, err := s.clock()
	if err != nil {
		return []Finding{unreadable(err)}
	}
	f.source = s.line("sys/devices/system/clocksource/clocksource0/current_clocksource")
	return judgeClock(f)
}

// readClock asks the kernel for the state of the clock and for the offset between its two
// clocks.
func readClock() (clockFacts, error) {
	var state unix.Timex
	status, err := unix.Adjtimex(&state)
	if err != nil {
		return clockFacts{}, fmt.Errorf("ask the kernel for the state of the clock (adjtimex): %w", err)
	}
	f := clockFacts{
		synchronised: status != unix.TIME_ERROR && state.Status&unix.STA_UNSYNC == 0,
		maxError:     time.Duration(state.Maxerror) * time.Microsecond, estimated: time.Duration(state.Esterror) * time.Microsecond,
	}
	f.boot, f.uncertain, err = monotonicZero()
	return f, err
}

// monotonicZero pairs both clocks as closely as some attempts allow.
func monotonicZero() (time.Time, time.Duration, error) {
	const attempts = 5
	var zero time.Time
	least := time.Duration(-1)
	for range attempts {
		var before, wall, after unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &before); err != nil {
			return zero, 0, fmt.Errorf("read the monotonic clock: %w", err)
		}
		if err := unix.ClockGettime(unix.CLOCK_REALTIME, &wall); err != nil {
			return zero, 0, fmt.Errorf("read the wall clock: %w", err)
		}
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &after); err != nil {
			return zero, 0, fmt.Errorf("read the monotonic clock: %w", err)
		}
		gap := time.Duration(after.Nano() - before.Nano())
		if least < 0 || gap < least {
			least, zero = gap, time.Unix(0, wall.Nano()-(before.Nano()+after.Nano())/2)
		}
	}
	return zero, least / 2, nil
}

func judgeClock(f clockFacts) []Finding {
	var findings []Finding
	switch {
	case !f.synchronised:
		findings = append(findings, Finding{
			Level: Warning, What: "nobody tells the kernel that the clock is synchronised (adjtimex)",
			Means: "Durations are right. When something happened is as this clock says, and cannot be compared with other nodes.",
			Do:    "Run chronyd or ntpd, or phc2sys with PTP, which may keep the clock right without saying so.",
		})
	case f.maxError > muchError:
		findings = append(findings, Finding{
			Level: Note, What: fmt.Sprintf("the clock is synchronised, to within %s at the most (%s is the estimate)", text.Duration(f.maxError), text.Duration(f.estimated)),
			Means: "The order of what happens on two nodes within that cannot be told.",
		})
	default:
		findings = append(findings, Finding{What: fmt.Sprintf("the clock is synchronised, to within %s at the most (%s is the estimate)",
			text.Duration(f.maxError), text.Duration(f.estimated))})
	}
	findings = append(findings, Finding{What: fmt.Sprintf("the monotonic clock, by which durations are measured, was 0 at %s by the wall clock, ±%s",
		f.boot.UTC().Format("2006-01-02T15:04:05.000000Z"), text.Duration(f.uncertain))})
	switch f.source {
	case "hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit":
		findings = append(findings, Finding{
			Level: Warning, What: "the clock source is " + f.source, Means: "Reading it takes a microsecond or more, and every probe reads it.",
			Do: "Look into dmesg for why tsc was given up (clocksource watchdog), and at the machine's firmware.",
		})
	}
	return findings
}
