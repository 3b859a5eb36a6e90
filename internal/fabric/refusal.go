package fabric

import (
	"fmt"
	"time"
)

const (
	// refusedFor is how long a counter that could not be read twice is left alone:
	// some firmware logs every attempt.
	refusedFor = 10 * time.Minute
	// mostAttempts is how many times in a row it is tried before.
	mostAttempts = 2
)

// refusal is since when, and how many times in a row, a counter was not read.
type refusal struct {
	at    time.Time
	times int
}

func (p *pass) isRefused(key totalKey) bool {
	r := p.refused[key]
	return r.times >= mostAttempts && p.readAt.Sub(r.at) < refusedFor
}

// refuse leaves a counter alone for a while that could not be read again: once is
// nothing. That is said when it begins.
func (p *pass) refuse(key totalKey, err error) {
	r := refusal{at: p.readAt, times: p.refused[key].times + 1}
	if r.times == mostAttempts {
		p.failed = append(p.failed, fmt.Errorf("%s %s: %w", key.source, key.name+key.netdev, err))
	}
	p.refused[key] = r
}

// fails reports whether a counter, or all of its interface, was not read the last
// time.
func (c *CounterReader) fails(key totalKey) bool {
	whole := key
	whole.name, whole.port = "", 0
	_, one := c.refused[key]
	_, all := c.refused[whole]
	return one || all
}
