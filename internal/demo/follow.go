package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxLine bounds one line of a followed file. The collector batches little in
// the demonstration; a longer line is not one of its own.
const maxLine = 16 << 20

// follower reads whole lines of a file that another process appends to.
type follower struct {
	path    string
	file    *os.File
	partial []byte
}

// lines returns the lines completed since the last call, without their
// newline; none while the file does not exist yet.
func (f *follower) lines() ([][]byte, error) {
	if f.file == nil {
		file, err := os.Open(f.path)
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
		return nil, fmt.Errorf("reading %s: %w", f.path, err)
	}
	f.partial = append(f.partial, fresh...)
	return f.split()
}

func (f *follower) split() ([][]byte, error) {
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
		return lines, fmt.Errorf("%s: a line is longer than %d bytes", f.path, maxLine)
	}
	return lines, nil
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
}
