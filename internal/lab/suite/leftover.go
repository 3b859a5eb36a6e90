package suite

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// bpfPrograms lists the BPF programs in the kernel, by id.
func bpfPrograms(ctx context.Context) (map[int]string, error) {
	out, err := run(ctx, "bpftool", "--json", "prog", "list")
	if err != nil {
		return nil, err
	}
	var list []struct {
		ID   int    `json:"id"`
		Type string `json:"type"`
		Name string `json:"name"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("bpftool prog list: %w", err)
	}
	programs := map[int]string{}
	for _, p := range list {
		// Those of control groups are systemd's.
		if !strings.HasPrefix(p.Type, "cgroup_") {
			programs[p.ID] = p.Type + " " + p.Name
		}
	}
	return programs, nil
}

// ownPrograms lists the programs that were not there before the first test.
func (g *Guest) ownPrograms(ctx context.Context) ([]string, error) {
	now, err := bpfPrograms(ctx)
	if err != nil {
		return nil, err
	}
	var own []string
	for id, name := range now {
		if _, before := g.programs[id]; !before {
			own = append(own, name)
		}
	}
	return own, nil
}

// ownLinks lists the kinds of links to programs that were not there before the first
// test, each with the program's name.
func (g *Guest) ownLinks(ctx context.Context) (map[string]bool, error) {
	programs, err := bpfPrograms(ctx)
	if err != nil {
		return nil, err
	}
	out, err := run(ctx, "bpftool", "--json", "link", "list")
	if err != nil {
		return nil, err
	}
	// A bpftool that is older than a kind of link has its number.
	var list []struct {
		Type    any `json:"type"`
		Program int `json:"prog_id"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("bpftool link list: %w", err)
	}
	links := map[string]bool{}
	for _, l := range list {
		name, known := programs[l.Program]
		if _, before := g.programs[l.Program]; known && !before {
			links[fmt.Sprint(l.Type, " ", name)] = true
		}
	}
	return links, nil
}

// nothingLeft checks that no BPF program, no uprobe event, no pinned file and
// no breakpoint in the provider's text outlives the collector. The kernel frees
// them a moment after the last file descriptor.
func (g *Guest) nothingLeft(ctx context.Context) error {
	var last error
	err := waitFor(ctx, patience, "no probe is left", func() (bool, error) {
		last = g.leftNow(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func (g *Guest) leftNow(ctx context.Context) error {
	own, err := g.ownPrograms(ctx)
	if err != nil {
		return err
	}
	if len(own) > 0 {
		return fmt.Errorf("BPF programs left: %s", strings.Join(own, ", "))
	}
	events, err := os.ReadFile("/sys/kernel/tracing/uprobe_events")
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(events)) > 0 {
		return fmt.Errorf("uprobe events left: %s", events)
	}
	pinned, err := os.ReadDir("/sys/fs/bpf")
	if err != nil {
		return err
	}
	if len(pinned) > 0 {
		return fmt.Errorf("pinned in /sys/fs/bpf: %v", pinned)
	}
	changed, err := g.keeper.changedText(providerLibrary)
	if err != nil {
		return err
	}
	if changed > 0 {
		return fmt.Errorf("%d bytes of %s are still patched in a process that maps it", changed, providerLibrary)
	}
	return nil
}

// textMapping is an executable mapping of a file.
type textMapping struct {
	start, end, offset uint64
	path               string
}

func (p *process) textMappings(part string) ([]textMapping, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid()))
	if err != nil {
		return nil, err
	}
	var found []textMapping
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.Contains(f[1], "x") || !strings.Contains(f[5], part) {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		m := textMapping{path: f[5]}
		for text, value := range map[string]*uint64{from: &m.start, to: &m.end, f[2]: &m.offset} {
			if *value, err = strconv.ParseUint(text, 16, 64); err != nil {
				return nil, err
			}
		}
		found = append(found, m)
	}
	return found, nil
}

func (p *process) maps(part string) (bool, error) {
	found, err := p.textMappings(part)
	return len(found) > 0, err
}

// changedText counts the bytes of a mapped library's text that differ from its
// file: the breakpoints of uprobes. It is a witness that owes nothing to BPF.
func (p *process) changedText(part string) (int, error) {
	mappings, err := p.textMappings(part)
	if err != nil {
		return 0, err
	}
	if len(mappings) == 0 {
		return 0, fmt.Errorf("%s maps no %s", p.name(), part)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.pid()))
	if err != nil {
		return 0, err
	}
	defer func() { _ = memory.Close() }()
	changed := 0
	for _, m := range mappings {
		n, err := changedIn(memory, m)
		if err != nil {
			return 0, fmt.Errorf("compare the text of %s: %w", m.path, err)
		}
		changed += n
	}
	return changed, nil
}

func changedIn(memory io.ReaderAt, m textMapping) (int, error) {
	file, err := os.Open(m.path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	size, err := textSize(file, m)
	if err != nil {
		return 0, err
	}
	inMemory, inFile := make([]byte, size), make([]byte, size)
	if _, err := memory.ReadAt(inMemory, int64(m.start)); err != nil {
		return 0, err
	}
	if _, err := file.ReadAt(inFile, int64(m.offset)); err != nil {
		return 0, err
	}
	changed := 0
	for i := range inMemory {
		if inMemory[i] != inFile[i] {
			changed++
		}
	}
	return changed, nil
}

// textSize returns how much of a mapping is backed by the segment of the file;
// the rest of its last page is not compared.
func textSize(file io.ReaderAt, m textMapping) (uint64, error) {
	f, err := elf.NewFile(file)
	if err != nil {
		return 0, err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Off&^0xfff == m.offset {
			return min(p.Off+p.Filesz-m.offset, m.end-m.start), nil
		}
	}
	return 0, fmt.Errorf("no executable segment at offset %#x", m.offset)
}
