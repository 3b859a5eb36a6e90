package packaging

import (
	"archive/tar"
	"crypto/x509"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const program = "the program"

// builtImage builds an image with a program that is none.
func builtImage(t *testing.T) v1.Image {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "otelcol-rdma")
	write(t, binary, program, 0o755)
	image, err := Image{Repository: repository, Binary: binary, Notices: []byte("of others"), Version: "0.1.0", Time: oneTime}.Build()
	require.NoError(t, err)
	return image
}

// readBack writes an image as a layout and reads it as a stranger does.
func readBack(t *testing.T, image v1.Image) (v1.Image, v1.Descriptor) {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.MkdirAll(filepath.Join(directory, "blobs/stale"), 0o755))
	require.NoError(t, WriteLayout(image, directory, "0.1.0"))
	assert.NoDirExists(t, filepath.Join(directory, "blobs/stale"))
	index, err := layout.ImageIndexFromPath(directory)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index), "every digest and size is right")
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	read, err := index.Image(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	return read, manifest.Manifests[0]
}

func TestImageReadBack(t *testing.T) {
	image, descriptor := readBack(t, builtImage(t))
	assert.Equal(t, &v1.Platform{OS: "linux", Architecture: "amd64"}, descriptor.Platform)
	assert.Equal(t, "0.1.0", descriptor.Annotations["org.opencontainers.image.ref.name"])

	file, err := image.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, "linux/amd64", file.OS+"/"+file.Architecture)
	assert.Equal(t, "0:0", file.Config.User, "the runtimes give capabilities to root alone")
	assert.Equal(t, []string{"/otelcol-rdma"}, file.Config.Entrypoint)
	assert.Equal(t, []string{"--config=/etc/otelcol-rdma/agent.yaml"}, file.Config.Cmd)
	assert.Equal(t, "0.1.0", file.Config.Labels["org.opencontainers.image.version"])
	assert.Equal(t, "Apache-2.0", file.Config.Labels["org.opencontainers.image.licenses"])

	files := filesOf(t, image)
	assert.Equal(t, program, files["otelcol-rdma"].content)
	assert.EqualValues(t, 0o755, files["otelcol-rdma"].header.Mode)
	assert.EqualValues(t, 0o1777, files["tmp"].header.Mode)
	for name, source := range map[string]string{"agent.yaml": "agent.yaml", "agent-telemetry.yaml": "gateway/agent-telemetry.yaml"} {
		want, err := os.ReadFile(repository + "/config/" + source)
		require.NoError(t, err)
		assert.Equal(t, string(want), files["etc/otelcol-rdma/"+name].content)
	}
	assert.Equal(t, "of others", files["licenses/THIRD-PARTY.txt"].content)
	for _, name := range []string{"LICENSE", "GPL-2.0.txt", "BSD-2-Clause.txt", "uPlot-MIT.txt"} {
		assert.Contains(t, files, "licenses/"+name)
	}
	pool := x509.NewCertPool()
	assert.True(t, pool.AppendCertsFromPEM([]byte(files["etc/ssl/certs/ca-certificates.crt"].content)))
	for name, f := range files {
		assert.Zero(t, f.header.Uid, name)
		assert.Zero(t, f.header.Gid, name)
		assert.True(t, oneTime.Equal(f.header.ModTime), name)
		assert.NotContains(t, name, "usr", "the host's /usr is mounted there")
	}
}

type imageFile struct {
	header  *tar.Header
	content string
}

// filesOf returns the files of all layers, as a container has them.
func filesOf(t *testing.T, image v1.Image) map[string]imageFile {
	t.Helper()
	archive := mutate.Extract(image)
	defer func() { _ = archive.Close() }()
	files := map[string]imageFile{}
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		files[strings.TrimSuffix(header.Name, "/")] = imageFile{header, string(content)}
	}
}

func TestImageIsReproducible(t *testing.T) {
	one, err := builtImage(t).Digest()
	require.NoError(t, err)
	other, err := builtImage(t).Digest()
	require.NoError(t, err)
	assert.Equal(t, one, other)
}

func TestLayerHasEachDirectoryOnceAndFirst(t *testing.T) {
	var names []string
	for _, e := range withParents([]entry{{name: "a/b/c"}, {name: "a/b/d"}, {name: "a/x/"}}) {
		names = append(names, e.name)
	}
	assert.Equal(t, []string{"a/", "a/b/", "a/b/c", "a/b/d", "a/x/"}, names)
}
