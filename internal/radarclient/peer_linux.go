package radarclient

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerOf is the process at the other end of a socket, 0 when it is not known.
func peerOf(connection net.Conn) int {
	socket, ok := connection.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	err = raw.Control(func(fd uintptr) {
		if who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(who.Pid)
		}
	})
	if err != nil {
		return 0
	}
	return pid
}
