package provider

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// linkedProgram is a compiled testdata/linked.c, as a process has it mapped.
type linkedProgram struct {
	root string
	// symbols are the addresses of its functions in the file.
	symbols map[string]uint64
	text    *elf.Prog
	line    string
}

// moved is by how much the process has the code elsewhere than the file says.
const moved = 0x550000000000

// compileLinked compiles the program, and strips it if asked to.
func compileLinked(t *testing.T, strip bool, flags ...string) linkedProgram {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc on this machine")
	}
	root := t.TempDir()
	path := filepath.Join(root, "train")
	args := append([]string{"-O2", "-o", path, filepath.Join("testdata", "linked.c")}, flags...)
	out, err := exec.Command("gcc", args...).CombinedOutput()
	if strings.Contains(string(out), "cannot find -lc") {
		t.Skip("no static libc on this machine to link the program with: install libc6-dev or glibc-static")
	}
	require.NoError(t, err, "%s", out)
	p := linkedProgram{root: root, symbols: map[string]uint64{}}
	file, err := elf.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	symbols, err := file.Symbols()
	require.NoError(t, err)
	for _, s := range symbols {
		p.symbols[s.Name] = s.Value
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_LOAD && segment.Flags&elf.PF_X != 0 {
			p.text = segment
		}
	}
	if strip {
		out, err := exec.Command("strip", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	opened, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = opened.Close() }()
	key, err := identify(opened)
	require.NoError(t, err)
	start := (p.text.Vaddr + moved) &^ 0xfff
	p.line = fmt.Sprintf("%x-%x r-xp %x %02x:%02x %d                     /train\n", start, start+p.text.Memsz+0x1000,
		p.text.Off&^0xfff, unix.Major(key.device), unix.Minor(key.device), key.inode)
	return p
}

// handles are the functions of a driver as the process points to them. It has none
// for Shared Receive Queues, but libibverbs has.
func (p *linkedProgram) handles(driver string) Handles {
	h := Handles{PostSRQRecv: p.symbols["no_post_srq_recv"] + moved}
	for function, name := range map[Function]string{PostSend: "_post_send", PollCQ: "_poll_cq", PostRecv: "_post_recv"} {
		if address, ok := p.symbols[driver+name]; ok {
			h[function] = address + moved
		}
	}
	return h
}

// linkedIn is what the finder finds by functions that a process points to.
func linkedIn(f *Finder, pid int, handles Handles) (*File, error) {
	return f.Linked(pid, func(io.ReaderAt) (Handles, error) { return handles, nil })
}

func (p *linkedProgram) offset(name string) uint64 {
	return p.symbols[name] - p.text.Vaddr + p.text.Off
}

// found are the functions that the analysis has, by the names in the program.
func (p *linkedProgram) found(library *Library) []string {
	var list []string
	for name := range p.symbols {
		for _, target := range library.Targets {
			if target.Offset == p.offset(name) && !slices.Contains(list, name) && strings.Contains(name, "_p") {
				list = append(list, name)
			}
		}
	}
	slices.Sort(list)
	return list
}

// A program without dynamic section, search table or symbols, and a
// position-independent one that has them.
func TestLinkedFindsFunctions(t *testing.T) {
	for name, p := range map[string]linkedProgram{
		"static":          compileLinked(t, false, "-static", "-no-pie"),
		"static stripped": compileLinked(t, true, "-static", "-no-pie"),
		"dynamic":         compileLinked(t, true, "-pie", "-fPIE"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorded(t)
			r.process(7, p.root, p.line)
			r.process(8, p.root, p.line)
			f := r.finder()
			before, err := f.Process(7)
			require.NoError(t, err)
			require.Empty(t, before, "nothing in the file gives it away")

			file, err := linkedIn(f, 7, p.handles("drv"))
			require.NoError(t, err)
			require.NotNil(t, file)
			assert.Equal(t, []string{"drv_poll_cq", "drv_post_recv", "drv_post_send"}, p.found(file.Library))
			assert.Equal(t, Provider, file.Library.Kind)
			assert.Equal(t, "train", file.Library.Name)
			assert.True(t, file.Library.Linked)
			assert.Zero(t, file.Library.Unresolved)
			assert.Len(t, file.Library.Sites, 3)

			analysed := f.Counters().Analysed
			again, err := linkedIn(f, 8, p.handles("drv"))
			require.NoError(t, err)
			require.NotNil(t, again)
			assert.Equal(t, analysed, f.Counters().Analysed, "what it leaves out is not looked for again")
			assert.Same(t, file.Library, again.Library)
			others, err := f.Process(8)
			require.NoError(t, err)
			require.Len(t, others, 1, "other processes of the program have it, too")
			assert.Same(t, file.Library, others[0].Library)
			all, errs := f.All(t.Context())
			require.Empty(t, errs)
			require.Len(t, all, 1)

			opened, err := f.Open(*file)
			require.NoError(t, err)
			assert.NoError(t, opened.Close())
		})
	}
}

// A device of another driver adds its functions to those that are known.
func TestLinkedTakesSeveralDrivers(t *testing.T) {
	p := compileLinked(t, false, "-static", "-no-pie")
	r := newRecorded(t)
	r.process(7, p.root, p.line)
	f := r.finder()
	first, err := linkedIn(f, 7, p.handles("drv"))
	require.NoError(t, err)
	second, err := linkedIn(f, 7, p.handles("other"))
	require.NoError(t, err)
	require.NotNil(t, second)
	assert.NotSame(t, first.Library, second.Library)
	assert.Equal(t, []string{
		"drv_poll_cq", "drv_post_recv", "drv_post_send", "other_poll_cq", "other_post_recv", "other_post_send",
	}, p.found(second.Library))
	third, err := linkedIn(f, 7, p.handles("drv"))
	require.NoError(t, err)
	assert.Same(t, second.Library, third.Library)
}

// A file with tables that have a function in different places, of which processes
// tell, is given up.
func TestLinkedContradicted(t *testing.T) {
	p := compileLinked(t, true, "-static", "-no-pie", "-DCROSSED")
	r := newRecorded(t)
	r.process(7, p.root, p.line)
	f := r.finder()
	_, err := linkedIn(f, 7, p.handles("drv"))
	require.NoError(t, err)
	crossed := p.handles("drv")
	crossed[PostSend], crossed[PostRecv] = crossed[PostRecv], crossed[PostSend]
	file, err := linkedIn(f, 7, crossed)
	require.ErrorIs(t, err, ErrContradiction)
	require.NotNil(t, file, "it is told which one it is")
	for _, handles := range []Handles{crossed, p.handles("drv")} {
		file, err = linkedIn(f, 7, handles)
		require.NoError(t, err)
		assert.Nil(t, file)
	}
	files, err := f.Process(7)
	require.NoError(t, err)
	assert.Empty(t, files)
}

// A file that is given up while another process is looked at is no provider, and
// what was known of it when that look came by is what that look returns.
func TestResolveWhatIsGivenUpMeanwhile(t *testing.T) {
	f := newRecorded(t).finder()
	var errs errorList
	given := candidate{file: File{Path: "/train"}, known: &known{kind: Other}}
	assert.Empty(t, f.resolve(&look{}, []candidate{given}, &errs))
	require.ErrorIs(t, errs.join("process 7"), ErrNotVerbs)

	given.linked = &Library{Linked: true}
	files := f.resolve(&look{}, []candidate{given}, &errorList{})
	require.Len(t, files, 1)
	assert.Same(t, given.linked, files[0].Library)
}

// What a process says against others counts for nothing where no table of the file
// bears it out: neither to end the tracing of the program, nor to hide a driver.
func TestLinkedIsNotEndedByLies(t *testing.T) {
	p := compileLinked(t, true, "-static", "-no-pie")
	r := newRecorded(t)
	r.process(7, p.root, p.line)
	f := r.finder()
	hides := p.handles("drv")
	hides[PostSRQRecv] = p.handles("other")[PostSend]
	crossed := p.handles("drv")
	crossed[PostSend], crossed[PostRecv] = crossed[PostRecv], crossed[PostSend]
	before, err := linkedIn(f, 7, hides)
	require.NoError(t, err)
	_, err = linkedIn(f, 7, crossed)
	require.ErrorIs(t, err, ErrUnresolved)
	after, err := linkedIn(f, 7, p.handles("drv"))
	require.NoError(t, err)
	assert.Equal(t, before.Library.Targets, after.Library.Targets)
	both, err := linkedIn(f, 7, p.handles("other"))
	require.NoError(t, err)
	assert.Len(t, both.Library.Targets, 6)
}

// A file that cannot be read tells nothing of who told of it.
func TestNoteWrongIsNotOfReading(t *testing.T) {
	f, k := newRecorded(t).finder(), &known{kind: Other}
	for range 2 * mostWrong {
		f.noteWrong(k, unix.EIO)
	}
	assert.Zero(t, k.linked.wrong)
	f.noteWrong(k, ErrUnresolved)
	assert.Equal(t, 1, k.linked.wrong)
}

// A process that lies gets no probe anywhere but at functions of a file that
// libibverbs is a part of, and is told of once.
func TestLinkedDoesNotBelieve(t *testing.T) {
	marked, unmarked := compileLinked(t, false, "-static", "-no-pie"), compileLinked(t, false, "-static", "-no-pie", "-DUNMARKED")
	inside := marked.handles("drv")
	inside[PollCQ]++
	apart := marked.handles("drv")
	apart[PostSend] = 0x1000
	mixed := marked.handles("drv")
	mixed[PostSend] = marked.handles("other")[PostSend]
	exchanged := marked.handles("drv")
	exchanged[PostRecv], exchanged[PollCQ] = exchanged[PollCQ], exchanged[PostRecv]
	crossed := marked.handles("drv")
	crossed[PostSend], crossed[PollCQ] = crossed[PollCQ], crossed[PostSend]
	omitted := maps.Clone(crossed)
	delete(omitted, PostRecv)
	without := marked.handles("drv")
	delete(without, PostRecv)
	sendsPoll := maps.Clone(without)
	sendsPoll[PollCQ], sendsPoll[PostSend] = marked.handles("other")[PollCQ], without[PollCQ]
	elsewhere := marked.handles("drv")
	elsewhere[PostSend] = marked.symbols["main"] + moved
	for name, tc := range map[string]struct {
		program linkedProgram
		handles Handles
		err     error
	}{
		"a file without libibverbs":    {unmarked, unmarked.handles("drv"), ErrNotVerbs},
		"the middle of a function":     {marked, inside, ErrUnresolved},
		"functions of two drivers":     {marked, mixed, ErrUnresolved},
		"another order":                {marked, exchanged, ErrUnresolved},
		"poll and send exchanged":      {marked, crossed, ErrUnresolved},
		"the same, none receives":      {marked, omitted, ErrUnresolved},
		"one that sends what polls":    {marked, sendsPoll, ErrUnresolved},
		"none receives":                {marked, without, ErrUnresolved},
		"a function of no driver":      {marked, elsewhere, ErrUnresolved},
		"functions that are not there": {marked, Handles{PollCQ: 0x10, PostSend: 0x20}, nil},
		"functions of several files":   {marked, apart, nil},
		"no functions":                 {marked, Handles{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorded(t)
			r.process(7, tc.program.root, tc.program.line)
			f := r.finder()
			file, err := linkedIn(f, 7, tc.handles)
			require.ErrorIs(t, err, tc.err)
			assert.Nil(t, file)
			file, err = linkedIn(f, 7, tc.handles)
			require.NoError(t, err, "it was told once")
			assert.Nil(t, file)
			files, err := f.Process(7)
			require.NoError(t, err)
			assert.Empty(t, files)
			if errors.Is(tc.err, ErrNotVerbs) {
				return
			}
			// An honest process with the same file is not harmed.
			file, err = linkedIn(f, 7, tc.program.handles("drv"))
			require.NoError(t, err)
			assert.NotNil(t, file)
		})
	}
}

// A file of which wrong things are told again and again is not analysed for ever.
func TestLinkedIsRefusedInTheEnd(t *testing.T) {
	p := compileLinked(t, true, "-static", "-no-pie")
	r := newRecorded(t)
	r.process(7, p.root, p.line)
	for _, honest := range []bool{false, true} {
		f := r.finder()
		if honest {
			_, err := linkedIn(f, 7, p.handles("drv"))
			require.NoError(t, err)
		}
		before := f.Counters().Analysed
		for i := range uint64(3 * mostWrong) {
			wrong := p.handles("drv")
			wrong[PostSend] += i + 1
			if honest {
				wrong = p.handles("other")
				wrong[PollCQ] += i + 1
			}
			_, _ = linkedIn(f, 7, wrong)
		}
		assert.EqualValues(t, mostWrong, f.Counters().Analysed-before)
		file, err := linkedIn(f, 7, p.handles("drv"))
		require.NoError(t, err)
		assert.Equal(t, honest, file != nil, "what was found before stays")
	}
}

// A process whose memory cannot be read for ever holds up nobody else.
func TestLinkedPassesOverWhatHangs(t *testing.T) {
	p := compileLinked(t, true, "-static", "-no-pie")
	r := newRecorded(t)
	r.process(7, p.root, p.line)
	r.process(8, p.root, p.line)
	f := r.finder()
	hang := make(chan struct{})
	for range 2 {
		// Only what hangs is waited for impatiently: the rest may take its time.
		f.patience = time.Millisecond
		_, err := f.Linked(7, func(io.ReaderAt) (Handles, error) {
			<-hang
			return nil, nil
		})
		require.ErrorIs(t, err, ErrHangs)
		f.patience = patience
		file, err := linkedIn(f, 8, p.handles("drv"))
		require.NoError(t, err)
		assert.NotNil(t, file)
	}
	close(hang)
	require.Eventually(t, func() bool { return len(f.Hanging()) == 0 }, 10*time.Second, time.Millisecond)
	file, err := linkedIn(f, 7, p.handles("drv"))
	require.NoError(t, err)
	assert.NotNil(t, file)
}

// A process that ends before or while its memory is read is gone.
func TestLinkedInGoneProcess(t *testing.T) {
	r := newRecorded(t)
	_, err := linkedIn(r.finder(), 7, Handles{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	r.process(7, "/")
	_, err = r.finder().Linked(7, func(memory io.ReaderAt) (Handles, error) {
		_, err := memory.ReadAt(make([]byte, 1), 0)
		return nil, err
	})
	require.ErrorIs(t, err, fs.ErrNotExist, "its memory has gone")
}

// What is a library of its own is found without being pointed to.
func TestLinkedLeavesLibrariesAlone(t *testing.T) {
	r := newRecorded(t)
	root := r.container(map[string][]byte{"v.so": testVerbs(), "p.so": testProvider()})
	line := r.maps(root+"/p.so", "/p.so")
	r.process(1, root, r.maps(root+"/v.so", "/v.so"), line)
	var start uint64
	_, err := fmt.Sscanf(line, "%x-", &start)
	require.NoError(t, err)
	file, err := linkedIn(r.finder(), 1, Handles{PollCQ: start + 16, PostSend: start + 32})
	require.NoError(t, err)
	assert.Nil(t, file)
}

// Functions are found in the descriptions themselves as in the search table.
func TestWalkFramesFindsWhatTheTableHas(t *testing.T) {
	p := compileLinked(t, false, "-pie", "-fPIE")
	file, err := os.Open(filepath.Join(p.root, "train"))
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	img, err := openImage(file)
	require.NoError(t, err)
	require.NoError(t, img.load())
	table, err := img.readFrames()
	require.NoError(t, err)
	walked, err := img.walkFrames()
	require.NoError(t, err)
	assert.Equal(t, table.starts, walked.starts)
	assert.Equal(t, table.fdes, walked.fdes)
	assert.NotEmpty(t, walked.starts)
	img.sectionNames = 1 << 15
	_, err = img.walkFrames()
	assert.ErrorIs(t, err, ErrUnresolved)
}
