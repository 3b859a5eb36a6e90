package tracer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// extendedLibrary is what is known of the extended verbs of one library.
type extendedLibrary struct {
	functions *provider.Extended
	probed    map[probedFunction]bool
	// places are the probed functions, to probe them again.
	places []wantedFunction
	sets   []probedSet
}

// probedFunction is a function, by its file offset, and what it is taken for.
// Processes may lie about that, so one function may be taken for several things:
// the kernel side asks the object that it is called on.
type probedFunction struct {
	offset uint64
	key    roleKey
}

// mostProbed bounds them: no provider has half as many.
const mostProbed = 256

// wantedFunction is a function to be probed, if it is not.
type wantedFunction struct {
	target provider.Target
	key    roleKey
}

func (w wantedFunction) probed() probedFunction { return probedFunction{w.target.Offset, w.key} }

var errTwoRoles = errors.New("one function has two roles in one object")

// openExtended prepares a library for questions, once.
func (a *attachment) openExtended() (*extendedLibrary, error) {
	if a.extended != nil {
		return a.extended, nil
	}
	functions, err := provider.OpenExtended(a.open)
	if err != nil {
		return nil, err
	}
	a.extended = &extendedLibrary{functions: functions, probed: map[probedFunction]bool{}}
	return a.extended, nil
}

// wanted turns the pointers of an object, as file offsets of this library or 0,
// into functions to probe. Whoever made the object may have put anything there.
func (l *extendedLibrary) wanted(parts []part, offsets []uint64) ([]wantedFunction, error) {
	var wanted []wantedFunction
	for _, p := range parts {
		offset := offsets[p.index]
		if offset == 0 {
			if p.needed {
				return nil, fmt.Errorf("there is no function %d", p.index)
			}
			continue
		}
		target, err := l.functions.Locate(offset)
		if err != nil && p.optional {
			continue
		}
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, wantedFunction{target, p.key()})
		if p.role == bpf.TrackerExtendedRoleROLE_COMPLETE {
			for _, other := range l.alternatives(probedFunction{offset, p.key()}) {
				wanted = append(wanted, wantedFunction{other, p.key()})
			}
		}
	}
	return wanted, l.check(wanted)
}

// alternatives are found once for a function.
func (l *extendedLibrary) alternatives(of probedFunction) []provider.Target {
	if l.probed[of] {
		return nil
	}
	return l.functions.Alternatives(of.offset)
}

func (l *extendedLibrary) check(wanted []wantedFunction) error {
	roles := map[uint64]roleKey{}
	fresh := map[probedFunction]bool{}
	for _, w := range wanted {
		if key, ok := roles[w.target.Offset]; ok && key != w.key {
			return fmt.Errorf("%w: %#x and %#x at file offset %#x", errTwoRoles, key, w.key, w.target.Offset)
		}
		roles[w.target.Offset] = w.key
		if !l.probed[w.probed()] {
			fresh[w.probed()] = true
		}
	}
	if len(l.probed)+len(fresh) > mostProbed {
		return fmt.Errorf("%d functions of the extended verbs are probed already", len(l.probed))
	}
	return nil
}

// attachExtended probes the functions that are not probed yet: all of them or,
// with an error, none.
func (k *kernelSide) attachExtended(a *attachment, wanted []wantedFunction, kind linkKind) error {
	l := a.extended
	var fresh []wantedFunction
	for _, w := range wanted {
		if !l.probed[w.probed()] && !slices.Contains(fresh, w) {
			fresh = append(fresh, w)
		}
	}
	// Between windows they are for the next one.
	if a.schedule.open {
		if err := k.placeExtended(a, fresh, kind); err != nil {
			return err
		}
	}
	l.places = append(l.places, fresh...)
	for _, w := range fresh {
		l.probed[w.probed()] = true
	}
	return nil
}

// placeExtended attaches the probes on functions, all of them or none.
func (k *kernelSide) placeExtended(a *attachment, functions []wantedFunction, kind linkKind) error {
	if len(functions) == 0 {
		return nil
	}
	var attached []link.Link
	for _, batch := range batchesOf(functions, a.cookie) {
		links, err := k.attachBatch(a.executable, batch, kind)
		attached = append(attached, links...)
		if err != nil {
			// Another object may want the same functions at once.
			return errors.Join(attachError(err, kind), closeLinks(attached))
		}
	}
	a.links = append(a.links, attached...)
	return nil
}

// extendedBatch is what one program is attached to at once.
type extendedBatch struct {
	program         extendedProgram
	places, cookies []uint64
}

// batchesOf groups the functions by program, in their order.
func batchesOf(functions []wantedFunction, library uint32) []*extendedBatch {
	var batches []*extendedBatch
	byProgram := map[extendedProgram]*extendedBatch{}
	for _, w := range functions {
		programs := programsOf(w.key.role())
		place := w.target.EntryOffset
		if len(programs) > 1 {
			// One trap for entry and return.
			place = w.target.ReturnOffset
		}
		for _, program := range programs {
			batch := byProgram[program]
			if batch == nil {
				batch = &extendedBatch{program: program}
				byProgram[program] = batch
				batches = append(batches, batch)
			}
			batch.places = append(batch.places, place)
			batch.cookies = append(batch.cookies, w.key.cookie(library, place-w.target.Offset))
		}
	}
	return batches
}

func (k *kernelSide) attachBatch(executable *link.Executable, batch *extendedBatch, kind linkKind) ([]link.Link, error) {
	program := k.collection.Programs[batch.program.name]
	if kind == linkMulti {
		attach := executable.UprobeMulti
		if batch.program.isReturn {
			attach = executable.UretprobeMulti
		}
		l, err := attach(nil, program, &link.UprobeMultiOptions{Addresses: batch.places, Cookies: batch.cookies})
		if err != nil {
			return nil, err
		}
		return []link.Link{l}, nil
	}
	attach := executable.Uprobe
	if batch.program.isReturn {
		attach = executable.Uretprobe
	}
	var links []link.Link
	for i, place := range batch.places {
		l, err := attach(batch.program.name, program, &link.UprobeOptions{Address: place, Cookie: batch.cookies[i]})
		if err != nil {
			return links, err
		}
		links = append(links, l)
	}
	return links, nil
}

// readers describes to the kernel side how members of a completion are read. A
// function that does more than read leaves its member unknown.
func (l *extendedLibrary) readers(name string, set *bpf.TrackerExtendedSet, offsets []uint64) {
	for index, into := range map[bpf.TrackerCqFunction]*bpf.TrackerExtendedReader{
		bpf.TrackerCqFunctionCQ_READ_QP_NUM:     &set.QpNum,
		bpf.TrackerCqFunctionCQ_READ_OPCODE:     &set.Opcode,
		bpf.TrackerCqFunctionCQ_READ_BYTE_LEN:   &set.ByteLen,
		bpf.TrackerCqFunctionCQ_READ_VENDOR_ERR: &set.VendorErr,
	} {
		reader, ok := provider.Reader{}, false
		if offset := offsets[index]; offset != 0 {
			reader, ok = l.functions.Reader(offset)
		}
		*into = encodeReader(reader, ok)
		if index != bpf.TrackerCqFunctionCQ_READ_QP_NUM {
			continue
		}
		direction, ok := provider.DirectionOf(name, reader)
		set.Direction = encodeReader(direction.Reader, ok)
		set.Sends, set.Receives = direction.Sends, direction.Receives
	}
}

func encodeReader(reader provider.Reader, ok bool) bpf.TrackerExtendedReader {
	var encoded bpf.TrackerExtendedReader
	if !ok || len(reader.Offsets) > len(encoded.Offsets) {
		return encoded
	}
	copy(encoded.Offsets[:], reader.Offsets)
	encoded.Steps, encoded.Size = uint32(len(reader.Offsets)), uint32(reader.Size)
	encoded.Shift, encoded.Mask = uint32(reader.Shift), reader.Mask
	if reader.Swap {
		encoded.Swap = 1
	}
	return encoded
}
