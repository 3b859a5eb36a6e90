package provider

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// siteRecord is what a probe at a site reports. At a site of a post WC is the
// work request, Content its beginning, and CQ the queue.
type siteRecord struct {
	Site, Failed uint32
	WC, CQ       uint64
	Content      [sizeofWC]byte
	// Entry is the end of the entry of the CQ, from its time stamp on, zeros
	// where it is not known.
	Entry [16]byte
}

const siteRecordSize = 88

// stampInCQE is where the time stamp is in struct mlx5_cqe64.
const stampInCQE = 48

// siteProbes are probes at all sites of a set that read the completion the way
// the site says.
type siteProbes struct {
	records *ringbuf.Reader
	links   []link.Link
}

// needBPF skips where programs cannot be loaded.
func needBPF(t *testing.T) {
	t.Helper()
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Skipf("needs CAP_SYS_RESOURCE or a kernel with memory accounting for BPF: %v", err)
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: 4096})
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) {
		t.Skipf("needs CAP_BPF and Linux 5.8 for ring buffers: %v", err)
	}
	require.NoError(t, err)
	_ = m.Close()
}

// attachSites puts a probe on every site in a process, or with 0 in all that use
// the library.
func attachSites(t *testing.T, library string, pid int, l *Library, sites []Site) *siteProbes {
	t.Helper()
	buffer, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: 8 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { _ = buffer.Close() })
	reader, err := ringbuf.NewReader(buffer)
	require.NoError(t, err)
	t.Cleanup(func() { _ = reader.Close() })
	file, err := link.OpenExecutable(library)
	require.NoError(t, err)
	p := &siteProbes{records: reader}
	for i, site := range sites {
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "GPL",
			Instructions: siteProgram(t, l, i, &site, buffer.FD()),
		})
		var log *ebpf.VerifierError
		if errors.As(err, &log) {
			t.Logf("%+v", log)
		}
		require.NoError(t, err)
		t.Cleanup(func() { _ = program.Close() })
		attached, err := file.UprobeMulti(nil, program, &link.UprobeMultiOptions{Addresses: []uint64{site.Offset}, PID: uint32(pid)})
		if errors.Is(err, ebpf.ErrNotSupported) {
			t.Skipf("this kernel has no uprobe_multi links (Linux 6.6): %v", err)
		}
		require.NoError(t, err, "site at %#x", site.Offset)
		p.links = append(p.links, attached)
	}
	t.Cleanup(p.detach)
	return p
}

func (p *siteProbes) detach() {
	for _, l := range p.links {
		_ = l.Close()
	}
	p.links = nil
}

// drain returns what was reported so far.
func (p *siteProbes) drain(t *testing.T) []siteRecord {
	t.Helper()
	var found []siteRecord
	require.NoError(t, p.records.Flush())
	for {
		raw, err := p.records.Read()
		if errors.Is(err, ringbuf.ErrFlushed) {
			return found
		}
		require.NoError(t, err)
		var r siteRecord
		_, err = binary.Decode(raw.RawSample, binary.NativeEndian, &r)
		require.NoError(t, err)
		found = append(found, r)
	}
}

// The stack of the program: the record, and 8 bytes for what is read.
const (
	stackRecord  = -siteRecordSize
	stackScratch = stackRecord - 8
)

// siteProgram computes the locations of a site from the registers, as a
// program of the product does, and reports them with the completion.
func siteProgram(t *testing.T, l *Library, index int, s *Site, buffer int) asm.Instructions {
	t.Helper()
	var out asm.Instructions
	add := func(i ...asm.Instruction) { out = append(out, i...) }
	add(asm.Mov.Reg(asm.R6, asm.R1), asm.Mov.Imm(asm.R7, int32(index)), asm.StoreMem(asm.RFP, stackRecord, asm.R7, asm.DWord))
	register := func(r uint8) int16 {
		offset, err := RegisterOffset(l.Machine, r)
		require.NoError(t, err)
		return int16(offset)
	}
	// place loads what a place holds into a register.
	place := func(to asm.Register, p Place, size asm.Size) {
		if p.Kind == PlaceRegister {
			add(asm.LoadMem(to, asm.R6, register(p.Register), asm.DWord))
			return
		}
		add(asm.LoadMem(asm.R3, asm.R6, register(p.Register), asm.DWord), asm.Add.Imm(asm.R3, p.Offset))
		add(asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, stackScratch), asm.Mov.Imm(asm.R2, int32(size.Sizeof())))
		add(asm.FnProbeReadUser.Call(), asm.LoadMem(to, asm.RFP, stackScratch, size))
	}
	location := func(to asm.Register, where Location) {
		if !where.Known() {
			add(asm.Mov.Imm(to, 0))
			return
		}
		place(asm.R8, where.Base, asm.DWord)
		if where.Counter.Kind != PlaceNone {
			place(asm.R9, where.Counter, asm.Word)
			add(asm.LSh.Imm(asm.R9, 32), asm.ArSh.Imm(asm.R9, 32), asm.Mul.Imm(asm.R9, where.Scale), asm.Add.Reg(asm.R8, asm.R9))
		}
		add(asm.Add.Imm(asm.R8, int32(where.Add)), asm.Mov.Reg(to, asm.R8))
	}
	add(asm.Mov.Imm(asm.R7, 0), asm.StoreMem(asm.RFP, stackScratch, asm.R7, asm.DWord))
	// For posts: the work request that failed, and the queue.
	object, queue := s.WC, s.CQ
	if s.Function != PollCQ {
		object, queue = s.WR, s.QP
	}
	add(asm.StoreMem(asm.RFP, stackRecord+72, asm.R7, asm.DWord), asm.StoreMem(asm.RFP, stackRecord+80, asm.R7, asm.DWord))
	if s.CQE.Known() {
		location(asm.R7, s.CQE)
		add(asm.Mov.Reg(asm.R3, asm.R7), asm.Add.Imm(asm.R3, stampInCQE))
		add(asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, stackRecord+72), asm.Mov.Imm(asm.R2, siteRecordSize-72))
		add(asm.FnProbeReadUser.Call())
	}
	location(asm.R7, queue)
	add(asm.StoreMem(asm.RFP, stackRecord+16, asm.R7, asm.DWord))
	location(asm.R7, object)
	add(asm.StoreMem(asm.RFP, stackRecord+8, asm.R7, asm.DWord))
	add(asm.Mov.Reg(asm.R3, asm.R7), asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, stackRecord+24), asm.Mov.Imm(asm.R2, sizeofWC))
	add(asm.FnProbeReadUser.Call(), asm.StoreMem(asm.RFP, stackRecord+4, asm.R0, asm.Word))
	sizes := map[uint8]asm.Size{1: asm.Byte, 2: asm.Half, 4: asm.Word, 8: asm.DWord}
	for _, o := range s.Overrides {
		if o.From.Kind == PlaceRegister {
			add(asm.LoadMem(asm.R7, asm.R6, register(o.From.Register), asm.DWord))
		} else {
			add(asm.LoadImm(asm.R7, o.Constant, asm.DWord))
		}
		add(asm.StoreMem(asm.RFP, stackRecord+24+int16(o.Offset), asm.R7, sizes[o.Size]))
	}
	add(asm.LoadMapPtr(asm.R1, buffer), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackRecord))
	add(asm.Mov.Imm(asm.R3, siteRecordSize), asm.Mov.Imm(asm.R4, 0), asm.FnRingbufOutput.Call())
	add(asm.Mov.Imm(asm.R0, 0), asm.Return())
	return out
}

// siteCounters counts the hits of sites in every process that uses a file.
type siteCounters struct {
	counts *ebpf.Map
}

// countSites puts a counting probe on every site, in all processes.
func countSites(t *testing.T, library string, sites []Site) *siteCounters {
	t.Helper()
	counts, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: uint32(len(sites))})
	require.NoError(t, err)
	t.Cleanup(func() { _ = counts.Close() })
	file, err := link.OpenExecutable(library)
	require.NoError(t, err)
	for i, site := range sites {
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "GPL",
			Instructions: asm.Instructions{
				asm.Mov.Imm(asm.R1, int32(i)), asm.StoreMem(asm.RFP, -8, asm.R1, asm.DWord),
				asm.LoadMapPtr(asm.R1, counts.FD()), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -8),
				asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, "end"),
				asm.Mov.Imm(asm.R1, 1), asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
				asm.Mov.Imm(asm.R0, 0).WithSymbol("end"), asm.Return(),
			},
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = program.Close() })
		attached, err := file.UprobeMulti(nil, program, &link.UprobeMultiOptions{Addresses: []uint64{site.Offset}})
		if errors.Is(err, ebpf.ErrNotSupported) {
			t.Skipf("this kernel has no uprobe_multi links (Linux 6.6): %v", err)
		}
		require.NoError(t, err, "site at %#x", site.Offset)
		t.Cleanup(func() { _ = attached.Close() })
	}
	return &siteCounters{counts}
}

// sum is the number of hits of all sites of a function.
func (c *siteCounters) sum(t *testing.T, sites []Site, function Function) uint64 {
	t.Helper()
	var total uint64
	for i, site := range sites {
		var n uint64
		require.NoError(t, c.counts.Lookup(uint32(i), &n))
		if site.Function == function {
			total += n
		}
	}
	return total
}
