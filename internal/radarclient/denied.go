package radarclient

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// What the group of a file has to be allowed.
const (
	groupConnects fs.FileMode = 0o020
	groupEnters   fs.FileMode = 0o010
)

// whoMay says who may open a socket that denied it: what denies has a group.
func whoMay(path string) string {
	denies, info := whatDenies(path)
	if info == nil {
		return "be root"
	}
	name, needs := "the socket", groupConnects
	if info.IsDir() {
		name, needs = "the directory "+denies, groupEnters
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || info.Mode()&needs == 0:
		return fmt.Sprintf("be root: %s is not open to a group", name)
	case owner.Gid == 0:
		return fmt.Sprintf("be root: the group of %s is root. Group= in the service of the collector lets another one in", name)
	}
	return memberOf(owner.Gid, name)
}

// memberOf says how to be in the group of what denies, which in a container may have no name.
func memberOf(id uint32, of string) string {
	group, err := user.LookupGroupId(strconv.FormatUint(uint64(id), 10))
	if err != nil {
		return fmt.Sprintf("be root or in the group %d, that of %s, which has no name here", id, of)
	}
	name := text.Clean(group.Name, maxText)
	return fmt.Sprintf("be root or a member of the group %s, that of %s (usermod -aG %s USER, and log in again)", name, of, name)
}

// whatDenies is the socket, or the directory above it that may not be entered: nobody sees
// what is in such a one.
func whatDenies(path string) (string, fs.FileInfo) {
	info, err := os.Stat(path)
	for errors.Is(err, fs.ErrPermission) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return path, nil
	}
	return path, info
}
