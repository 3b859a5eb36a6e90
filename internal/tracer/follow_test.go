package tracer

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// follower returns a tracer that can follow what a finder answers, but for probing,
// and what it logs. The file is probed already.
func follower(probed provider.File) (*Tracer, func() []string) {
	tr, lines := logged("CAP_SYS_PTRACE")
	tr.finder = provider.NewFinder("")
	tr.libraries = &libraries{
		attachments: map[fileKey]*attachment{keyOf(probed.ID): {file: probed}},
		refused:     map[fileKey]refusal{},
	}
	return tr, lines
}

func linkedFile(inode uint64) provider.File {
	return provider.File{
		ID: provider.FileID{Device: 1, Inode: inode}, Library: &provider.Library{Linked: true},
		DisplayPath: fmt.Sprintf("/tmp/train-%d", inode),
	}
}

// What the finder answers about a program decides whether, and when, it is looked at
// again, and what is told and counted.
func TestFollowMapsAnswers(t *testing.T) {
	probed, given := linkedFile(1), linkedFile(2)
	wrapped := func(err error) error { return fmt.Errorf("/proc/7/root/train: %w", err) }
	for name, tc := range map[string]struct {
		file   *provider.File
		err    error
		want   sight
		warns  string
		missed uint64
	}{
		"the QP is not filled in":        {nil, wrapped(errNotMadeYet), sightTryAgain, "", 0},
		"it contradicts itself":          {&given, wrapped(provider.ErrContradiction), sightRefused, "not traced any more", 0},
		"the process has ended":          {nil, wrapped(fs.ErrNotExist), sightForNow, "", 0},
		"its functions are not resolved": {nil, wrapped(provider.ErrUnresolved), sightRefused, "not traced: functions not resolved", 0},
		"it has no verbs":                {nil, wrapped(provider.ErrNotVerbs), sightRefused, "not traced: not a verbs library", 0},
		"it is malformed":                {nil, wrapped(provider.ErrMalformed), sightRefused, "not traced: malformed ELF file", 0},
		"it hangs":                       {nil, wrapped(provider.ErrHangs), sightOutOfReach, "", 1},
		"it was changed":                 {nil, wrapped(provider.ErrChanged), sightOutOfReach, "", 1},
		"its disk fails":                 {nil, wrapped(unix.EIO), sightOutOfReach, "", 1},
		"access is denied":               {nil, wrapped(denied("/proc/7/mem", "CAP_SYS_PTRACE")), sightOutOfReach, "in spite of CAP_SYS_PTRACE", 1},
		"it uses libraries":              {nil, nil, sightLeftAlone, "", 0},
		"it is found":                    {&probed, nil, sightForNow, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			tr, lines := follower(probed)
			if got := tr.follow(7, tc.file, tc.err); got != tc.want {
				t.Errorf("the sight is %d, want %d", got, tc.want)
			}
			if got := tr.missed.Load(); got != tc.missed {
				t.Errorf("%d looks missed, want %d", got, tc.missed)
			}
			said := lines()
			if (len(said) > 0) != (tc.warns != "") || len(said) > 0 && !strings.Contains(said[0], tc.warns) {
				t.Errorf("it says %q, want %q", said, tc.warns)
			}
			_, refused := tr.libraries.refused[keyOf(given.ID)]
			if refused != (tc.file == &given) {
				t.Errorf("the file is refused: %v", refused)
			}
		})
	}
}

// A thousand copies of a program that lie, that contradict each other and that cannot
// be probed are three lines, and three numbers when the interval has ended.
func TestCopiesOfAProgramAreFewLines(t *testing.T) {
	tr, lines := follower(linkedFile(1))
	for i := range uint64(1000) {
		file := linkedFile(2 + i)
		file.PID = 7 // Those that no process brought along are installed, and each is told of.
		tr.follow(uint32(i), nil, fmt.Errorf("%s: %w", file.DisplayPath, provider.ErrUnresolved))
		tr.follow(uint32(i), &file, provider.ErrContradiction)
		tr.tellRefused(false, file, unix.ENOMEM)
	}
	if got := lines(); len(got) != 3 {
		t.Fatalf("%d lines, want 3, the first are %q", len(got), got[:min(len(got), 4)])
	}
	tr.warnings.tellLeft(tr.warnings.said["a program is not traced any more"].since.Add(2 * warnInterval))
	got := lines()[3:]
	if len(got) != 3 {
		t.Fatalf("at the end of the interval: %q", got)
	}
	for _, line := range got {
		if !strings.Contains(line, "others=999") {
			t.Errorf("it says %s", line)
		}
	}
}
