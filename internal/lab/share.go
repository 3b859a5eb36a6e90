package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rdmaradar/rdmaradar/internal/lab/suite"
)

// contents are the files that the guest is given: where each is, by its name in the
// guest's share. The guest program has those that BuildGuest builds beside it.
func (b Boot) contents(guestProgram string) (map[string]string, error) {
	collector := filepath.Join(b.Repository, "bin", "otelcol-rdma")
	if !exists(collector) {
		return nil, fmt.Errorf("%s does not exist: run make build", collector)
	}
	files := map[string]string{"otelcol-rdma": collector, "guest": guestProgram}
	for _, name := range builtPrograms() {
		files[name] = filepath.Join(filepath.Dir(guestProgram), name)
	}
	if !b.Service {
		return files, nil
	}
	var err error
	files[suite.Package], err = b.debianPackage()
	return files, err
}

// debianPackage is the one that make has built.
func (b Boot) debianPackage() (string, error) {
	found, err := filepath.Glob(filepath.Join(b.Repository, "out", "packages", "otelcol-rdma_*_amd64.deb"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("out/packages has %d packages of the agent for Debian, not one: run make packages", len(found))
	}
	return found[0], nil
}

// prepareShare makes the directory that the guest sees, without what an earlier run
// left there.
func (b Boot) prepareShare(contents map[string]string) (string, error) {
	share, err := filepath.Abs(filepath.Join(OutputDir(b.Repository), "guest-"+b.name()))
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(share); err != nil {
		return "", err
	}
	if err := os.MkdirAll(share, 0o755); err != nil {
		return "", err
	}
	var errs []error
	for name, path := range contents {
		errs = append(errs, CopyExecutable(path, filepath.Join(share, name)))
	}
	return share, errors.Join(errs...)
}

// dropContents leaves what the guest wrote.
func dropContents(share string, contents map[string]string) error {
	var errs []error
	for name := range contents {
		errs = append(errs, os.Remove(filepath.Join(share, name)))
	}
	return errors.Join(errs...)
}
