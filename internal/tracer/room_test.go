package tracer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// Copies of a library that users bring along take half of the places at most; one of
// root finds room until there is none.
func TestCopiesOfUsersLeaveRoom(t *testing.T) {
	users := openOwned(t, 1)
	roots, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	const places = 8
	l := &libraries{
		side:        &kernelSide{libraries: &table[bpf.TrackerLibrary]{length: places + 1}},
		attachments: map[fileKey]*attachment{},
		cookies:     make([]uint32, places),
	}
	add := func(open *os.File) bool {
		foreign, err := l.room(provider.File{}, open)
		if err != nil {
			return false
		}
		l.attachments[fileKey{inode: uint64(len(l.attachments))}] = &attachment{foreign: foreign}
		l.cookies = l.cookies[1:]
		return true
	}
	for i := range places / 2 {
		if !add(users) {
			t.Fatalf("no room for copy %d", i)
		}
	}
	if add(users) {
		t.Error("copies of users take more than half of the places")
	}
	for i := range places / 2 {
		if !add(roots) {
			t.Fatalf("no room for library %d of root", i)
		}
	}
	if add(roots) {
		t.Error("more libraries than places")
	}
}

// openOwned makes a file that belongs to a user. Who is not root has made it as that.
func openOwned(t *testing.T, uid int) *os.File {
	path := filepath.Join(t.TempDir(), "library")
	open, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = open.Close() })
	if os.Geteuid() == 0 {
		if err := os.Chown(path, uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	return open
}
