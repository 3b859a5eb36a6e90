package radarclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// Watch hands over a view each second until the context ends, which is no error, the
// collector ends, or each returns an error. A collector that is watched also looks for
// the peers of queues and for where their threads run.
func (c *Client) Watch(ctx context.Context, each func(radar.View) error) error {
	response, err := c.get(ctx, "events")
	if err != nil {
		return ended(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReaderSize(response.Body, 1<<20)
	for {
		line, err := readLine(lines)
		if err != nil {
			return ended(ctx, fmt.Errorf("the collector on %s has ended: %w", c.Where(), foreign{err}))
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		view, err := c.decode(data)
		if err != nil {
			return err
		}
		if err := each(view); err != nil {
			return err
		}
	}
}

// ended is nil where the context has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// readLine reads a line of at most maxView bytes.
func readLine(from *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxView:
			return nil, fmt.Errorf("a line of more than %d MiB", maxView>>20)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		default:
			return line, err
		}
	}
}
