package rdmaradarextension

import (
	"errors"
	"syscall"
)

// closeToOthers sets the mode that the file is going to have, so that it is never open
// to others, not even for a moment.
func closeToOthers(_, _ string, connection syscall.RawConn) error {
	var failed error
	err := connection.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), socketMode) })
	return errors.Join(err, failed)
}
