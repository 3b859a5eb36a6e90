package baseline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// play has one character for the slow requests of each second: a digit, X for many.
func play(seconds string) (changes []string) {
	e := NewEpisodes[string]()
	e.Look(1000 * second)
	for i, c := range seconds {
		e.Look(uint64(1001+i) * second)
		slow := uint64(strings.IndexRune("0123456789", c))
		if c == 'X' {
			slow = 1000
		}
		switch episode, change := e.Observe("kind", slow); change {
		case Began:
			changes = append(changes, fmt.Sprintf("at %d began %d", i+1, episode.Onset/second-1000))
		case Ended:
			changes = append(changes, fmt.Sprintf("at %d ended %d, %d slow", i+1, episode.Last/second-1000, episode.Slow))
		}
	}
	return changes
}

func TestOnsetAndEnd(t *testing.T) {
	const quiet = "0000000000"
	for _, c := range []struct {
		name, seconds string
		want          []string
	}{
		{"nothing", quiet + quiet, nil},
		{"one now and then", "1" + quiet + "1" + quiet + "3" + quiet, nil},
		{"just too far apart", "1000001", nil},
		{"just near enough", "0100001", []string{"at 7 began 1"}},
		{"two seconds in a row", "0011" + quiet, []string{"at 4 began 2", "at 14 ended 4, 2 slow"}},
		{"many at once", "000X" + quiet, []string{"at 4 began 3", "at 14 ended 4, 1000 slow"}},
		{"pauses are part of it", "11000000000100000000019000000000" + quiet, []string{"at 2 began 0", "at 33 ended 23, 13 slow"}},
		{"again after it ended", "11" + quiet + "11" + quiet, []string{"at 2 began 0", "at 12 ended 2, 2 slow", "at 14 began 12", "at 24 ended 14, 2 slow"}},
		{"from the first look on", "X", []string{"at 1 began 0"}},
	} {
		if got := play(c.seconds); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// However slow requests are spread, an episode ends once for each time it begins, and
// two of them are at least the time apart that ends one.
func FuzzEpisodes(f *testing.F) {
	f.Add([]byte{1, 1, 0, 0, 200})
	f.Fuzz(func(t *testing.T, seconds []byte) {
		e := NewEpisodes[int]()
		now, last, lasts := uint64(time.Hour), uint64(0), false
		e.Look(now)
		for _, slow := range seconds {
			now += second
			e.Look(now)
			episode, change := e.Observe(0, uint64(slow))
			if (change == Began && lasts) || (change == Ended && !lasts) {
				t.Fatalf("the change %d, while it lasts: %t", change, lasts)
			}
			switch change {
			case Began:
				if last != 0 && episode.Onset-last < uint64(endQuiet)-second {
					t.Fatalf("began %v after the one before", time.Duration(episode.Onset-last))
				}
				lasts = true
			case Ended:
				last, lasts = episode.Last, false
			}
		}
	})
}

func TestForgottenEpisodesEnd(t *testing.T) {
	e := NewEpisodes[string]()
	e.Look(second)
	e.Look(2 * second)
	e.Observe("slow", 100)
	e.Observe("hardly", 1)
	if _, change := e.Forget("slow"); change != Ended {
		t.Errorf("the episode was not ended: %d", change)
	}
	for _, kind := range []string{"slow", "hardly", "unknown"} {
		if _, change := e.Forget(kind); change != Unchanged {
			t.Errorf("%s: %d", kind, change)
		}
	}
}

// A look that comes late does not make one of what is far apart.
func TestLateLooks(t *testing.T) {
	e := NewEpisodes[string]()
	e.Look(second)
	e.Look(2 * second)
	e.Observe("kind", 1)
	e.Look(60 * second)
	if _, change := e.Observe("kind", 1); change != Unchanged {
		t.Errorf("two slow requests, a minute apart: %d", change)
	}
}
