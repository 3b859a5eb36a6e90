package lab

import (
	"fmt"
	"io"
)

// cpioWriter writes an archive in the "newc" format, the one an initrd has
// (kernel Documentation/driver-api/early-userspace/buffer-format.rst).
type cpioWriter struct {
	w     io.Writer
	inode int
	err   error
}

func (c *cpioWriter) dir(name string)               { c.entry(name, 0o040755, nil) }
func (c *cpioWriter) file(name string, data []byte) { c.entry(name, 0o100755, data) }

func (c *cpioWriter) entry(name string, mode int, data []byte) {
	if c.err != nil {
		return
	}
	c.inode++
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		c.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
	c.padded([]byte(header + name + "\x00"))
	c.padded(data)
}

// padded writes b and fills up to a multiple of four. Header and name together
// are padded, so is the content.
func (c *cpioWriter) padded(b []byte) {
	if c.err != nil {
		return
	}
	if _, c.err = c.w.Write(b); c.err != nil {
		return
	}
	if n := len(b) % 4; n != 0 {
		_, c.err = c.w.Write(make([]byte, 4-n))
	}
}

func (c *cpioWriter) close() error {
	c.inode = -1 // the trailer has inode 0
	c.entry("TRAILER!!!", 0, nil)
	return c.err
}
