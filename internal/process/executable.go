package process

import (
	"path/filepath"
	"strings"
)

// readExecutable returns the file name of the program, without the directory:
// paths tell user names. It is "" without an error where there is no program,
// as with kernel threads and processes that are exiting.
func readExecutable(dir files) (string, error) {
	target, err := dir.readlink("exe")
	if vanished(err) {
		return "", nil
	}
	if err != nil {
		return "", part("executable", err)
	}
	return executableName(target), nil
}

// executableName is the last part of the target of /proc/PID/exe. The kernel
// appends " (deleted)" once the file is unlinked, as after an upgrade.
func executableName(target string) string {
	name := filepath.Base(strings.TrimSuffix(target, " (deleted)"))
	if name == "." || name == string(filepath.Separator) {
		return ""
	}
	return name
}
