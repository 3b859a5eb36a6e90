package rdmaradarextension

import (
	"errors"
	"io/fs"
	"net"
	"os"
)

// ownSocket is a listener on a socket that removes its path at the end only while that is
// its own: another collector may have made one there since.
type ownSocket struct {
	*net.UnixListener
	path string
	made fs.FileInfo
}

// ownedAt returns the listener that made the socket at path. Of other listeners there is
// nothing to remove.
func ownedAt(path string, listener net.Listener) net.Listener {
	socket, ok := listener.(*net.UnixListener)
	if !ok {
		return listener
	}
	made, err := os.Lstat(path)
	if err != nil {
		return listener
	}
	socket.SetUnlinkOnClose(false)
	return &ownSocket{UnixListener: socket, path: path, made: made}
}

// Close ends listening and removes the path.
func (s *ownSocket) Close() error {
	now, err := os.Lstat(s.path)
	if err != nil || !os.SameFile(now, s.made) {
		return s.UnixListener.Close()
	}
	// Removed before it is closed, as net does: nobody finds it without a listener.
	return errors.Join(os.Remove(s.path), s.UnixListener.Close())
}
