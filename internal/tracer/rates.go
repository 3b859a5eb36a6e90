package tracer

import (
	"sync"
	"time"
)

// rateAge is how long an answer is believed: to ask may be a command to the
// firmware of a NIC.
const rateAge = 5 * time.Second

// rateRetry is how long it is believed that a rate is not known: a device may be used
// at the moment at which it comes up.
const rateRetry = 900 * time.Millisecond

// rates remembers what devices carry. Firmware that hangs makes who asks wait for
// as long: one goroutine for each device asks, and everybody else is told the last
// answer. It is safe for concurrent use.
type rates struct {
	ask func(device string) (bytesPerSecond float64, ok bool)
	// changed is told of an answer that is not the one before.
	changed func()

	mu      sync.Mutex
	answers map[string]*rateAnswer
}

type rateAnswer struct {
	bytesPerSecond float64
	ok             bool
	asked          time.Time
	// asking says that the answer to the last question is not there yet.
	asking bool
}

func newRates(ask func(device string) (float64, bool), changed func()) *rates {
	return &rates{ask: ask, changed: changed, answers: map[string]*rateAnswer{}}
}

// of returns what a device carries in one direction, in bytes per second, false
// when it is not known or not known yet. It never waits.
func (r *rates) of(device string) (float64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := r.answers[device]
	if answer == nil {
		answer = &rateAnswer{}
		r.answers[device] = answer
	}
	age := rateAge
	if !answer.ok {
		age = rateRetry
	}
	if now := time.Now(); !answer.asking && now.Sub(answer.asked) >= age {
		answer.asking, answer.asked = true, now
		go r.learn(device, answer)
	}
	return answer.bytesPerSecond, answer.ok
}

// forget drops what is known of a device that is gone.
func (r *rates) forget(device string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.answers, device)
}

func (r *rates) learn(device string, answer *rateAnswer) {
	rate, ok := r.ask(device)
	r.mu.Lock()
	changed := rate != answer.bytesPerSecond || ok != answer.ok
	answer.bytesPerSecond, answer.ok, answer.asking = rate, ok, false
	r.mu.Unlock()
	if changed {
		r.changed()
	}
}
