// Package otlp reads what the collector's file exporter wrote: one OTLP request
// in JSON on each line. It reads only what the lab asks about.
package otlp

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Tail reads a file that the file exporter writes, each line once.
type Tail struct {
	path   string
	offset int64
}

// NewTail returns a reader from the beginning of the file, which need not exist
// yet.
func NewTail(path string) *Tail { return &Tail{path: path} }

// eachLine calls use for every complete line that was not read before. The last
// line is left for the next time while it has no end: the exporter is still
// writing it.
func (t *Tail) eachLine(use func([]byte) error) error {
	data, err := t.unread()
	if err != nil {
		return err
	}
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return nil
		}
		line := data[:end]
		data = data[end+1:]
		begin := t.offset
		t.offset += int64(end) + 1
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := use(line); err != nil {
			return fmt.Errorf("%s, line at %d: %w", t.path, begin, err)
		}
	}
}

func (t *Tail) unread() ([]byte, error) {
	f, err := os.Open(t.path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(t.offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}
