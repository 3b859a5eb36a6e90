// Package testprogram writes programs that tests are about to run.
package testprogram

import (
	"os"
	"syscall"
)

// Write writes a program with the permissions given, so that it can be run at once.
// A process that another test forks meanwhile would inherit the file as one that is
// being written, and until its exec the kernel would refuse to run the program
// (ETXTBSY): nobody forks as long as it is open, see syscall.ForkLock.
func Write(path string, content []byte, permissions os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, permissions)
}
