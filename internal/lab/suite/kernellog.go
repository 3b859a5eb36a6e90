package suite

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// trouble is what a healthy kernel does not say.
var trouble = regexp.MustCompile(`BUG:|WARNING:|Oops|Call Trace|general protection|segfault|traps: .*trap|soft lockup|hung task|rcu: INFO|uprobe: .*fail|Out of memory|Kernel panic`)

// kernelLog reads the kernel's messages from a mark on.
type kernelLog struct {
	fd   int
	open bool
}

// mark forgets what came before.
func (k *kernelLog) mark() error {
	if !k.open {
		fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open /dev/kmsg: %w", err)
		}
		k.fd, k.open = fd, true
	}
	_, err := unix.Seek(k.fd, 0, unix.SEEK_END)
	return err
}

// clean reports messages since the mark that a healthy kernel does not print.
func (k *kernelLog) clean() error {
	if !k.open {
		return nil
	}
	buf := make([]byte, 16<<10)
	var bad []string
	for {
		// One read returns one record.
		n, err := unix.Read(k.fd, buf)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if errors.Is(err, unix.EPIPE) {
			continue // messages were overwritten; go on with the oldest
		}
		if err != nil {
			return fmt.Errorf("read the kernel's log: %w", err)
		}
		if line := string(buf[:n]); trouble.MatchString(line) && len(bad) < 20 {
			bad = append(bad, strings.TrimSpace(line))
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("the kernel complained: %s", strings.Join(bad, " | "))
	}
	return nil
}

// selfTest plants a complaint and expects it to be seen: a silent log would
// otherwise pass for a healthy kernel.
func (k *kernelLog) selfTest() error {
	if err := k.mark(); err != nil {
		return err
	}
	// Without its newline the message would stay open, hidden from readers.
	if err := os.WriteFile("/dev/kmsg", []byte("WARNING: planted by the lab\n"), 0); err != nil {
		return err
	}
	if k.clean() == nil {
		return errors.New("the lab does not see what the kernel complains about")
	}
	return nil
}
