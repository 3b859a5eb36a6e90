package fabric

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributeLimit is the most sysfs returns for one attribute: a page.
const attributeLimit = 4 << 10

// attribute reads a sysfs attribute without the space around it.
func attribute(path ...string) (string, error) {
	return readSome(filepath.Join(path...), attributeLimit)
}

// optional is an attribute, "" when it cannot be read.
func optional(path ...string) string {
	text, err := attribute(path...)
	if err != nil {
		return ""
	}
	return text
}

func readSome(path string, limit int64) (string, error) {
	file, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit))
	return strings.TrimSpace(string(text)), err
}

// openRegular opens a file and nothing else: what is below the root may not be a
// sysfs, and a FIFO would wait for a writer.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(cmp.Or(err, fmt.Errorf("%s is not a regular file", path)), file.Close())
	}
	return file, nil
}

// nameLimit is IB_DEVICE_NAME_MAX of the kernel, more than IFNAMSIZ.
const nameLimit = 64

// isName reports whether the text can be the name of one directory entry. Names
// also come from the memory of other processes.
func isName(text string) bool {
	return text != "" && len(text) < nameLimit && text != "." && text != ".." &&
		!strings.ContainsAny(text, "/\x00")
}

// physicalDevice is the directory of the hardware below a class device, "" when
// it has none.
func physicalDevice(class string) string {
	path, err := filepath.EvalSymlinks(filepath.Join(class, "device"))
	if err != nil {
		return ""
	}
	return path
}

// pciFunction finds the PCI function at or above a device: a scalable function
// or a virtio device is a child of one.
func pciFunction(device string) (path, address string) {
	for path = device; path != "" && path != filepath.Dir(path); path = filepath.Dir(path) {
		if name := filepath.Base(path); isPCIAddress(name) {
			return path, name
		}
		if filepath.Base(path) == "." {
			break
		}
	}
	return device, ""
}

// isPCIAddress reports domain:bus:device.function, such as 0000:18:00.0. The
// domain has more than four digits behind Intel VMD.
func isPCIAddress(name string) bool {
	domain, rest, ok := strings.Cut(name, ":")
	if !ok || len(domain) < 4 || len(domain) > 8 || len(rest) != len("18:00.0") || rest[2] != ':' || rest[5] != '.' {
		return false
	}
	for _, number := range []string{domain, rest[:2], rest[3:5], rest[6:]} {
		if _, err := strconv.ParseUint(number, 16, 32); err != nil {
			return false
		}
	}
	return true
}
