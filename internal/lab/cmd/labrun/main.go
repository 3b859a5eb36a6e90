// Command labrun boots a kernel of the lab, runs one command in the guest with
// a shared directory as its working directory, and exits with its status.
//
//	labrun -kernel 6.12 -share DIR -- ./program arguments
//	labrun -kernel 6.1 -share DIR -- sh -c 'modprobe rdma_rxe && rdma link'
//
// A guest that dies ends it with status 125.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab"
)

func main() {
	status, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "labrun:", err)
	}
	os.Exit(status)
}

const statusDeadGuest = 125

func run() (int, error) {
	kernel := flag.String("kernel", "6.1", "kernel to boot: 6.1, 6.12 or newest")
	shared := flag.String("share", ".", "host directory that is /mnt in the guest")
	repository := flag.String("repository", ".", "root of the checkout, where the cache is unless RDMARADAR_CACHE says otherwise")
	timeout := flag.Duration("timeout", 5*time.Minute, "longest time for the whole boot")
	memory := flag.Int("memory", 1024, "memory of the guest in MiB")
	systemd := flag.Bool("systemd", false, "boot with systemd")
	flag.Parse()
	if flag.NArg() == 0 {
		return 2, errors.New("no command given: labrun [flags] -- command arguments")
	}
	line, err := lab.FindKernelLine(*kernel)
	if err != nil {
		return 2, err
	}
	share, err := filepath.Abs(*shared)
	if err != nil {
		return 2, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return boot(ctx, *repository, lab.Machine{
		Kernel: line, Share: share, Command: lab.Quote(flag.Args()),
		Console: os.Stdout, Timeout: *timeout, MemoryMiB: *memory, Systemd: *systemd,
	})
}

func boot(ctx context.Context, repository string, m lab.Machine) (int, error) {
	if err := lab.CheckHost(); err != nil {
		return 2, err
	}
	cache, err := lab.OpenCache(repository)
	if err != nil {
		return 2, err
	}
	if err := cache.Prepare(ctx, m.Kernel); err != nil {
		return 2, err
	}
	status, err := m.Run(ctx, cache)
	if err != nil {
		return statusDeadGuest, err
	}
	return status, nil
}
