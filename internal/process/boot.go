package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// procStatLimit bounds /proc/stat, whose line of interrupts grows with the
// machine; btime comes after it.
const procStatLimit = 4 << 20

// bootTime is the wall-clock time of boot. It is read once, so that the
// creation time of a process, which identifies it to others, does not move
// when the clock is stepped.
type bootTime struct {
	mu    sync.Mutex
	known bool
	at    time.Time
}

func (b *bootTime) of(procRoot string) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known {
		return b.at, nil
	}
	file, err := os.Open(filepath.Join(procRoot, "stat"))
	if err != nil {
		return time.Time{}, fmt.Errorf("find the time of boot: %w", err)
	}
	defer file.Close()
	at, err := parseBootTime(file)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the time of boot in %s: %w", file.Name(), err)
	}
	b.at, b.known = at, true
	return at, nil
}

func parseBootTime(text io.Reader) (time.Time, error) {
	lines := bufio.NewReader(io.LimitReader(text, procStatLimit))
	for {
		line, err := lines.ReadSlice('\n')
		if rest, found := strings.CutPrefix(string(line[:min(len(line), 32)]), "btime "); found {
			return parseSeconds(strings.TrimSpace(rest))
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if err != nil {
			return time.Time{}, errors.New("no line btime")
		}
	}
}

func parseSeconds(text string) (time.Time, error) {
	seconds, err := strconv.ParseUint(text, 10, 33)
	if err != nil {
		return time.Time{}, errors.New("btime is not a number of seconds")
	}
	return time.Unix(int64(seconds), 0), nil
}
