package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxLine bounds one line of a followed file. The collector batches little in
// what it is run for here; a longer line is not one of its own.
const maxLine = 16 << 20

// Follower reads whole lines of a file that another process appends to.
type Follower struct {
	// Path is the file, which need not be there yet.
	Path    string
	file    *os.File
	partial []byte
}

// Lines returns the lines completed since the last call, without their
// newline; none while the file does not exist yet.
func (f *Follower) Lines() ([][]byte, error) {
	if f.file == nil {
		file, err := os.Open(f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		f.file = file
	}
	fresh, err := io.ReadAll(io.LimitReader(f.file, maxLine))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.Path, err)
	}
	f.partial = append(f.partial, fresh...)
	return f.split()
}

func (f *Follower) split() ([][]byte, error) {
	var lines [][]byte
	for {
		line, rest, found := bytes.Cut(f.partial, []byte{'\n'})
		if !found {
			break
		}
		lines = append(lines, bytes.Clone(line))
		f.partial = rest
	}
	if len(f.partial) > maxLine {
		return lines, fmt.Errorf("%s: a line is longer than %d bytes", f.Path, maxLine)
	}
	return lines, nil
}

// Close closes the file.
func (f *Follower) Close() {
	if f.file != nil {
		_ = f.file.Close()
	}
}
