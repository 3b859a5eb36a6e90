package packaging

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageConfig is where the configuration of the agent stands in the image.
const imageConfig = "/etc/otelcol-rdma/agent.yaml"

// Image is what the container image is made of: nothing but the program, its
// configuration, the certificate authorities of the web, and the licences of it all.
type Image struct {
	// Repository is the root of the checkout.
	Repository string
	// Binary is the collector, a program that needs no libraries.
	Binary string
	// Notices are the licences of what is linked into it, see [Notices].
	Notices []byte
	Version string
	// Time is that of every file and of the image, so that the same files make the same
	// digest.
	Time time.Time
}

// platform of the image.
func platform() *v1.Platform { return &v1.Platform{OS: "linux", Architecture: "amd64"} }

// Build makes the image. The collector is a layer of its own, the last one.
func (i Image) Build() (v1.Image, error) {
	files, err := i.files()
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	binary, err := os.ReadFile(i.Binary)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, entries := range [][]entry{files, {{name: "otelcol-rdma", mode: 0o755, content: binary}}} {
		layer, err := layerOf(entries, i.Time)
		if err != nil {
			return nil, fmt.Errorf("layer of the image: %w", err)
		}
		created := v1.History{Created: v1.Time{Time: i.Time}, CreatedBy: "make image"}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: created}); err != nil {
			return nil, fmt.Errorf("layer of the image: %w", err)
		}
	}
	return i.configure(image)
}

// files are what the program finds: the directories are those that agent.yaml names,
// for a container without volumes.
func (i Image) files() ([]entry, error) {
	config, err := os.ReadFile(filepath.Join(i.Repository, "config", "agent.yaml"))
	if err != nil {
		return nil, err
	}
	telemetry, err := os.ReadFile(filepath.Join(i.Repository, "config", "gateway", "agent-telemetry.yaml"))
	if err != nil {
		return nil, err
	}
	licences, err := i.licences()
	if err != nil {
		return nil, err
	}
	return append([]entry{
		// Runtimes bring their own; without any, localhost has no address.
		{name: "etc/hosts", mode: 0o644, content: []byte("127.0.0.1 localhost\n::1 localhost\n")},
		{name: "etc/otelcol-rdma/agent.yaml", mode: 0o644, content: config},
		{name: "etc/otelcol-rdma/agent-telemetry.yaml", mode: 0o644, content: telemetry},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities()},
		{name: "run/otelcol-rdma/", mode: 0o755},
		{name: "tmp/", mode: 0o1777},
		{name: "var/cache/otelcol-rdma/", mode: 0o700},
		{name: "var/lib/otelcol-rdma/", mode: 0o700},
	}, licences...), nil
}

// licences are those of the repository, and of what is linked into the program.
func (i Image) licences() ([]entry, error) {
	paths, err := filepath.Glob(filepath.Join(i.Repository, "LICENSES", "*.txt"))
	if err != nil {
		return nil, err
	}
	entries := []entry{{name: "licenses/THIRD-PARTY.txt", mode: 0o644, content: i.Notices}}
	for _, path := range append(paths, filepath.Join(i.Repository, "LICENSE")) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: "licenses/" + filepath.Base(path), mode: 0o644, content: text})
	}
	return entries, nil
}

// configure says how the image is run. The user is root: container runtimes give
// added capabilities to no other. What it may do is for the capabilities to say.
func (i Image) configure(image v1.Image) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = platform().OS, platform().Architecture
	file.Created = v1.Time{Time: i.Time}
	file.Config = v1.Config{
		User:       "0:0",
		Entrypoint: []string{"/otelcol-rdma"},
		Cmd:        []string{"--config=" + imageConfig},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "otelcol-rdma",
			"org.opencontainers.image.description": "OpenTelemetry Collector with the RDMA receiver",
			"org.opencontainers.image.source":      "https://github.com/rdmaradar/rdmaradar",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     i.Version,
		},
	}
	return mutate.ConfigFile(image, file)
}

// WriteLayout writes the image as an OCI image layout
// (https://github.com/opencontainers/image-spec/blob/main/image-layout.md) in place of
// what is in the directory, under the name of its version.
func WriteLayout(image v1.Image, directory, version string) error {
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	path, err := layout.Write(directory, empty.Index)
	if err != nil {
		return fmt.Errorf("write the image layout: %w", err)
	}
	err = path.AppendImage(image,
		layout.WithPlatform(*platform()),
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version}))
	if err != nil {
		return fmt.Errorf("write the image layout: %w", err)
	}
	return nil
}
