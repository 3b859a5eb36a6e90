package tracer

import (
	"fmt"
	"os"
	"syscall"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// room says whether one more file can be probed. Files that do not belong to root
// share half of the places: a user who maps many copies of a provider does not keep
// the libraries from being probed that are installed.
func (l *libraries) room(file provider.File, open *os.File) (foreign bool, err error) {
	places := l.side.libraries.length - 1
	if len(l.cookies) == 0 {
		return false, fmt.Errorf("probing %s: %d libraries are probed already", file.DisplayPath, places)
	}
	if foreign, err = isForeign(open); err != nil || !foreign {
		return foreign, err
	}
	taken := uint32(0)
	for _, a := range l.attachments {
		if a.foreign {
			taken++
		}
	}
	if taken >= places/2 {
		return true, fmt.Errorf("probing %s: %d libraries that do not belong to root are probed already", file.DisplayPath, taken)
	}
	return true, nil
}

// isForeign reports whether a file belongs to another user than root.
func isForeign(open *os.File) (bool, error) {
	info, err := open.Stat()
	if err != nil {
		return false, err
	}
	status, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false, fmt.Errorf("%s: who owns the file is not known", open.Name())
	}
	return status.Uid != 0, nil
}
