package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbsim"
)

// queueCounts are the numbers of queue pairs of one program.
var queueCounts = []int{16, 256, 1024, 4096, 16384}

// measureQueues looks at the memory of the maps while so many queue pairs are
// in use, and at how many of them are followed.
func (b *bench) measureQueues(ctx context.Context, r *result) error {
	b.progress("memory against queue pairs: %d to %d", queueCounts[0], queueCounts[len(queueCounts)-1])
	holder, err := b.startHolder(ctx)
	if err != nil {
		return err
	}
	defer holder.close()
	for _, n := range queueCounts {
		one, err := b.measureQueueCount(ctx, n)
		if err != nil {
			return fmt.Errorf("%d queue pairs: %w", n, err)
		}
		r.QPs = append(r.QPs, one)
	}
	return nil
}

// measureQueueCount uses a tracer of its own each time: queues that ended keep
// their memory for a while.
func (b *bench) measureQueueCount(ctx context.Context, n int) (queueResult, error) {
	o := shipped(b.library)
	if err := o.attach(ctx); err != nil {
		return queueResult{}, err
	}
	one, err := b.countQueues(ctx, o, n)
	return one, errors.Join(err, o.detach())
}

func (b *bench) countQueues(ctx context.Context, o *tracerObserver, n int) (queueResult, error) {
	r := queueResult{QPs: n}
	_, before, err := o.queuesOf(0)
	if err != nil {
		return r, err
	}
	queues, err := b.startQueues(ctx, n)
	if err != nil {
		return r, err
	}
	r.Tracked, r.Untracked, err = o.queuesOf(uint32(queues.command.Process.Pid))
	r.Untracked -= min(before, r.Untracked)
	r.MapBytes = o.tracer.MapBytes()
	err = errors.Join(err, queues.end())
	if missing := n - r.Tracked - int(r.Untracked); err == nil && missing > 0 {
		b.note("%d of %d queue pairs are neither followed nor counted as untracked", missing, n)
	}
	return r, err
}

// usedQueues is a program that uses queue pairs until it is ended.
type usedQueues struct {
	command *exec.Cmd
	out     *bytes.Buffer
}

// startQueues starts a program with so many queue pairs, and returns when all are in use.
func (b *bench) startQueues(ctx context.Context, n int, arguments ...string) (*usedQueues, error) {
	ready, err := filepath.Abs(filepath.Join(outDirectory, "queues.ready"))
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(ready); err != nil {
		return nil, err
	}
	arguments = append([]string{
		"--provider", b.library,
		"--ready-file", ready,
		"--seconds", "120",
		"--qps", strconv.Itoa(n),
		"--depth", "16",
		"--rate", strconv.Itoa(queuePosts),
	}, arguments...)
	q := &usedQueues{command: verbsim.Command(ctx, workloadPath, "rate", arguments...), out: &bytes.Buffer{}}
	q.command.SysProcAttr = childAttributes()
	q.command.Stdout, q.command.Stderr = q.out, q.out
	if err := b.startObserved(q.command); err != nil {
		return nil, err
	}
	if err := everyQueuePosted(ctx, ready, n); err != nil {
		return nil, errors.Join(err, q.end())
	}
	return q, nil
}

// end asks the program to end, and is an error where it did not end well.
func (q *usedQueues) end() error {
	_ = q.command.Process.Signal(syscall.SIGTERM)
	if err := q.command.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(q.command.Args, " "), err, lastLine(q.out.String()))
	}
	return nil
}

// queuePosts is how many posts a second all queues make together, in turn.
const queuePosts = 50_000

// everyQueuePosted waits until the queues are made, and for twice the time in
// which each gets its turn: every one then holds the memory that it needs.
func everyQueuePosted(ctx context.Context, ready string, n int) error {
	err := waitFor(ctx, 30*time.Second, func() (bool, error) {
		_, err := os.Stat(ready)
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the queues were not made: %w", err)
	}
	return sleep(ctx, time.Second+2*time.Second*time.Duration(n)/queuePosts)
}

// queuesOf counts the queues of a process that are followed, and all queues
// that are not.
func (o *tracerObserver) queuesOf(pid uint32) (tracked int, untracked uint64, err error) {
	s, err := o.tracer.Snapshot()
	for i := range s.Queues {
		if s.Queues[i].ID.Process.TGID == pid {
			tracked++
		}
	}
	return tracked, s.UntrackedQueues, err
}

// growth is what one more queue pair costs in memory, by least squares over the
// measured counts, in bytes.
func growth(counts []queueResult) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, c := range counts {
		x, y := float64(c.QPs), float64(c.MapBytes)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if d := n*sxx - sx*sx; d != 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}
