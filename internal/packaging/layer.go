package packaging

import (
	"archive/tar"
	"bytes"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is a file of root's, or a directory if its name ends in a slash.
type entry struct {
	name string
	// mode are permissions as tar writes them: 0o1777 is a directory like /tmp.
	mode    int64
	content []byte
}

// layerOf makes a layer of files, and of the directories that they are in.
func layerOf(entries []entry, when time.Time) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, e := range withParents(entries) {
		if err := writeEntry(w, e, when); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

func writeEntry(w *tar.Writer, e entry, when time.Time) error {
	header := tar.Header{Name: e.name, Mode: e.mode, ModTime: when, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
	if strings.HasSuffix(e.name, "/") {
		header.Typeflag = tar.TypeDir
	}
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	_, err := w.Write(e.content)
	return err
}

// withParents adds the directories that entries are in, each once and before what is
// in it, open to all.
func withParents(entries []entry) []entry {
	named := map[string]bool{}
	for _, e := range entries {
		named[e.name] = true
	}
	var whole []entry
	for _, e := range entries {
		var parents []entry
		for dir := path.Dir(strings.TrimSuffix(e.name, "/")); dir != "."; dir = path.Dir(dir) {
			if name := dir + "/"; !named[name] {
				named[name] = true
				parents = append(parents, entry{name: name, mode: 0o755})
			}
		}
		slices.Reverse(parents)
		whole = append(append(whole, parents...), e)
	}
	return whole
}
