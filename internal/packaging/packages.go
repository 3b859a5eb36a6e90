package packaging

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // A format.
	_ "github.com/goreleaser/nfpm/v2/rpm" // A format.
)

// formats of the packages, as nfpm names them.
var formats = []string{"deb", "rpm"}

// Packages is what packages are made of.
type Packages struct {
	// Repository is the root of the checkout, Binaries the directory of the programs, and
	// Notices that of what [Notices] has of each, NAME.txt.
	Repository, Binaries, Notices string
	Version                       string
	// Time is that of every file, so that the same files make the same package.
	Time time.Time
}

// Build writes the package that a file in config/packages describes, in each format,
// into a directory, and returns their paths.
func (p Packages) Build(description, directory string) ([]string, error) {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	var paths []string
	for _, format := range formats {
		path, err := p.build(description, format, directory)
		if err != nil {
			return nil, fmt.Errorf("package %s as %s: %w", description, format, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (p Packages) build(description, format, directory string) (string, error) {
	// A configuration is read anew for each format, since packagers change it.
	config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(p.Repository, "config", "packages", description+".yaml"), p.variable)
	if err != nil {
		return "", err
	}
	info, err := config.Get(format)
	if err != nil {
		return "", err
	}
	p.locate(info)
	info.MTime = p.Time
	info = nfpm.WithDefaults(info)
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	path := filepath.Join(directory, packager.ConventionalFileName(info))
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(packager.Package(info, file), file.Close())
}

// variable gives the variables of the descriptions, and no others.
func (p Packages) variable(name string) string {
	switch name {
	case "VERSION":
		return p.Version
	case "BIN":
		return p.Binaries
	case "NOTICES":
		return p.Notices
	default:
		return ""
	}
}

// locate makes the paths of a description, which are below the repository, absolute.
func (p Packages) locate(info *nfpm.Info) {
	paths := []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove, &info.Scripts.PostRemove}
	for _, content := range info.Contents {
		paths = append(paths, &content.Source)
	}
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(p.Repository, *path)
		}
	}
}
