package doctor

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/text"
)

const (
	// mostDescriptors and mostMapped bound what is read of one process.
	mostDescriptors = 1 << 16
	mostMapped      = 64 << 20
	// capIPCLock is the bit of CAP_IPC_LOCK, which takes the limit away.
	capIPCLock = 14
)

// rdmaProcess is a process that has an RDMA device open.
type rdmaProcess struct {
	pid  int
	name string
	// devices are those that are open, files the mapped executable ones.
	devices, files []string
	bits32         bool
	// cpus are those that it may run on.
	cpus []fabric.CPURange
	// lockLimit is how many bytes it may lock, less than 0 for no limit or one that is not
	// known; locksAll says that it may lock all.
	lockLimit int64
	locksAll  bool
}

// processes are those that have an RDMA device open. hidden counts those that could not
// be looked into.
type processes struct {
	rdma   []rdmaProcess
	hidden int
}

// readProcesses looks at who has the devices of ib_uverbs open.
func readProcesses(root string) (processes, error) {
	entries, err := os.ReadDir(filepath.Join(root, "proc"))
	if err != nil {
		return processes{}, fmt.Errorf("list processes: %w", err)
	}
	var all processes
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid <= 0 {
			continue
		}
		devices, err := openDevices(root, pid)
		if errors.Is(err, fs.ErrPermission) {
			all.hidden++
		}
		if len(devices) > 0 {
			all.rdma = append(all.rdma, readProcess(root, pid, devices))
		}
	}
	return all, nil
}

// openDevices are the names of the RDMA devices that a process has open.
func openDevices(root string, pid int) ([]string, error) {
	path := filepath.Join(root, "proc", strconv.Itoa(pid), "fd")
	directory, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = directory.Close() }()
	numbers, err := directory.Readdirnames(mostDescriptors)
	if err != nil {
		return nil, err
	}
	var devices []string
	for _, number := range numbers {
		target, err := os.Readlink(filepath.Join(path, number))
		if errors.Is(err, fs.ErrPermission) {
			return devices, err
		}
		if err != nil {
			continue // It was closed meanwhile.
		}
		name, ok := strings.CutPrefix(target, "/dev/infiniband/uverbs")
		if !ok {
			continue
		}
		device, err := os.ReadFile(filepath.Join(root, "sys/class/infiniband_verbs/uverbs"+name, "ibdev"))
		if err == nil {
			devices = append(devices, text.Clean(string(device), maxText))
		}
	}
	return devices, nil
}

// readProcess reads what can be read: what cannot stays unknown.
func readProcess(root string, pid int, devices []string) rdmaProcess {
	directory := filepath.Join(root, "proc", strconv.Itoa(pid))
	p := rdmaProcess{pid: pid, devices: devices, lockLimit: -1}
	if name, err := os.ReadFile(filepath.Join(directory, "comm")); err == nil {
		p.name = text.Clean(string(name), maxText)
	}
	p.files = mappedFiles(filepath.Join(directory, "maps"))
	p.bits32 = is32Bit(filepath.Join(directory, "exe"))
	p.readStatus(filepath.Join(directory, "status"))
	p.readLimits(filepath.Join(directory, "limits"))
	return p
}

// mappedFiles are the paths of the files that are mapped executable.
func mappedFiles(path string) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	var files []string
	known := map[string]bool{}
	lines := bufio.NewScanner(io.LimitReader(file, mostMapped))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || !strings.Contains(fields[1], "x") || !strings.HasPrefix(fields[5], "/") || known[fields[5]] {
			continue
		}
		known[fields[5]] = true
		files = append(files, text.Clean(fields[5], maxText))
	}
	return files
}

// is32Bit looks at the head of a program.
func is32Bit(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, elf.EI_NIDENT)
	_, err = io.ReadFull(file, head)
	return err == nil && bytes.HasPrefix(head, []byte(elf.ELFMAG)) && elf.Class(head[elf.EI_CLASS]) == elf.ELFCLASS32
}

func (p *rdmaProcess) readStatus(path string) {
	for name, value := range fieldsOf(path, ":") {
		switch name {
		case "Cpus_allowed_list":
			p.cpus = fabric.ParseCPUList(value)
		case "CapEff":
			bits, err := strconv.ParseUint(value, 16, 64)
			p.locksAll = err == nil && bits&(1<<capIPCLock) != 0
		}
	}
}

func (p *rdmaProcess) readLimits(path string) {
	limit, ok := fieldsOf(path, "  ")["Max locked memory"]
	if !ok {
		return
	}
	soft, _, _ := strings.Cut(limit, " ")
	if bytes, err := strconv.ParseInt(soft, 10, 64); err == nil {
		p.lockLimit = bytes
	}
}

// fieldsOf are the lines of a small file, each a name and a value.
func fieldsOf(path, separator string) map[string]string {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if name, value, ok := strings.Cut(line, separator); ok {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields
}
