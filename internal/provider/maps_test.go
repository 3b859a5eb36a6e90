package provider

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestParseMaps(t *testing.T) {
	text := strings.Join([]string{
		"55d0c0a00000-55d0c0a01000 r--p 00000000 fe:00 247260                     /usr/bin/app",
		"55d0c0a01000-55d0c0a02000 r-xp 00001000 fe:00 247260                     /usr/bin/app",
		"7f0000000000-7f0000001000 r-xp 00000000 00:00 0 ",
		"7f0000001000-7f0000002000 r-xp 00000000 00:00 0                          [vdso]",
		"7f0000002000-7f0000003000 rwxp 00000000 103:02 18446744073709551615       /a b/lib with  spaces.so (deleted)",
		`7f0000003000-7f0000004000 r-xs 00000000 00:01 77 /memfd:x\012y (deleted)`,
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
	}, "\n")
	found, err := parseMaps(strings.NewReader(text+"\n"), nil)
	require.NoError(t, err)
	want := []mapping{
		{start: 0x55d0c0a01000, end: 0x55d0c0a02000, offset: 0x1000, key: inodeKey{unix.Mkdev(0xfe, 0), 247260}, path: "/usr/bin/app"},
		{start: 0x7f0000002000, end: 0x7f0000003000, key: inodeKey{unix.Mkdev(0x103, 2), 1<<64 - 1}, path: "/a b/lib with  spaces.so", deleted: true},
		{start: 0x7f0000003000, end: 0x7f0000004000, key: inodeKey{unix.Mkdev(0, 1), 77}, path: "/memfd:x\ny", deleted: true},
	}
	assert.Equal(t, want, found)
	unterminated, err := parseMaps(strings.NewReader(text), nil)
	require.NoError(t, err)
	assert.Equal(t, want, unterminated)
	empty, err := parseMaps(strings.NewReader(""), nil)
	require.NoError(t, err)
	assert.Empty(t, empty)
}

func TestParseMapsRefuses(t *testing.T) {
	for _, line := range []string{
		"hello", "x-y r-xp 0 0:0 0 /a", "1000-0 r-xp 0 0:0 0 /a", "0-1000 r-xp 0 00 0 /a",
		"0-1000 r-xp 0 0:0 -1 /a", "0 r-xp 0 0:0 1 /a", strings.Repeat("a", maxMapsLine+1),
	} {
		_, err := parseMaps(strings.NewReader(line+"\n"), nil)
		assert.Error(t, err, "%.40s", line)
	}
}

// endless is a forged file without end.
type endless struct{ at int }

func (e *endless) Read(p []byte) (int, error) {
	const line = "0-1000 r--p 00000000 00:00 0\n"
	n := copy(p, line[e.at:])
	e.at = (e.at + n) % len(line)
	return n, nil
}

func TestParseMapsIsBounded(t *testing.T) {
	_, err := parseMaps(&endless{}, nil)
	require.ErrorIs(t, err, ErrTooLarge)
	broken := errors.New("broken")
	_, err = parseMaps(io.MultiReader(strings.NewReader("0-1000 r-xp 0 0:1 5 /a\n"), readError{broken}), nil)
	require.ErrorIs(t, err, broken)
}

type readError struct{ err error }

func (r readError) Read([]byte) (int, error) { return 0, r.err }

func TestParseOwnMaps(t *testing.T) {
	file, err := os.Open("/proc/self/maps")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	found, err := parseMaps(file, nil)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	require.NotEmpty(t, found)
	assert.Equal(t, self, found[0].path)
}
