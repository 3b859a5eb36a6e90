package tracer

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// heldLink is a link that the kernel lets go of when it is released.
type heldLink struct {
	link.Link
	released <-chan struct{}
	err      error
}

func (l heldLink) Close() error {
	<-l.released
	return l.err
}

func TestCloserWorksInTheBackground(t *testing.T) {
	var c closer
	released := make(chan struct{})
	failure := errors.New("not closed")
	links := []link.Link{heldLink{released: released}, heldLink{released: released, err: failure}}
	c.closeAll(&links)
	if links != nil || !c.busy() {
		t.Fatalf("links are still there: %v, busy %v", links, c.busy())
	}
	close(released)
	c.wait()
	if c.busy() {
		t.Error("busy with nothing")
	}
	if err := c.takeErrors(); !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
	if err := c.takeErrors(); err != nil {
		t.Errorf("the error was taken, and is there again: %v", err)
	}
}

// A gap that is over lasts until the probes of the last window are gone.
func TestWindowWaitsForTheLastOnesProbes(t *testing.T) {
	tr := &Tracer{}
	now := time.Now()
	a := &attachment{schedule: newSchedule(now.Add(-time.Second))}
	a.schedule.closed(now.Add(-time.Second))
	released := make(chan struct{})
	a.closer.close([]link.Link{heldLink{released: released}})
	settled, err := tr.settle(a)
	if settled || err != nil {
		t.Fatalf("settled %v, error %v", settled, err)
	}
	// Without a kernel side there is nothing that it could probe.
	if err := tr.govern(a, now, 0, settled); err != nil || a.schedule.open {
		t.Errorf("a window began: %v, error %v", a.schedule.open, err)
	}
	close(released)
	a.closer.wait()
	if settled, err = tr.settle(a); !settled || err != nil {
		t.Errorf("settled %v, error %v", settled, err)
	}
}

// What the probes of a file need is handed out again when they are gone, and
// until then the file is not probed anew.
func TestLeavingLibraryKeepsWhatItsProbesNeed(t *testing.T) {
	open, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	id := provider.FileID{Device: 1, Inode: 2}
	a := &attachment{
		file: provider.File{ID: id}, open: open, cookie: 7,
		posts: []*postFunction{{siteIndexes: []uint32{1}}},
		polls: []*pollFunction{{siteIndexes: []uint32{2, 3}}},
	}
	l := &libraries{side: &kernelSide{}, attachments: map[fileKey]*attachment{}, leaving: []*attachment{a}}
	released := make(chan struct{})
	a.closer.close([]link.Link{heldLink{released: released}})
	if left, err := l.vacate(a.file); left != a || err != nil {
		t.Fatalf("to be waited for: %v, error %v", left, err)
	}
	if left, err := l.vacate(provider.File{ID: provider.FileID{Device: 1, Inode: 3}}); left != nil || err != nil {
		t.Errorf("another file waits for %v, error %v", left, err)
	}
	if len(l.cookies) != 0 || len(l.side.freeSites) != 0 {
		t.Fatalf("cookies %v and sites %v are free while they are read", l.cookies, l.side.freeSites)
	}
	close(released)
	a.closer.wait()
	if left, err := l.vacate(a.file); left != nil || err != nil {
		t.Errorf("to be waited for: %v, error %v", left, err)
	}
	if len(l.cookies) != 1 || len(l.side.freeSites) != 3 {
		t.Errorf("cookies %v and sites %v are free, want one and three", l.cookies, l.side.freeSites)
	}
}
