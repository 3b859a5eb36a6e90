// Command packages makes the packages that config/packages describes.
//
//	packages -repository . -binaries bin -out out/packages
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rdmaradar/rdmaradar/internal/packaging"
)

func main() {
	repository := flag.String("repository", ".", "root of the checkout")
	binaries := flag.String("binaries", "bin", "directory of the programs")
	out := flag.String("out", "out/packages", "directory of the packages")
	flag.Parse()
	if err := run(*repository, *binaries, *out); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(repository, binaries, out string) error {
	version, err := packaging.Version(repository)
	if err != nil {
		return err
	}
	when, err := packaging.SourceTime(repository)
	if err != nil {
		return err
	}
	notices, err := os.MkdirTemp("", "notices")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(notices) }()
	packages := packaging.Packages{Repository: repository, Binaries: binaries, Notices: notices, Version: version, Time: when}
	for _, description := range []string{"otelcol-rdma", "rdmaradar"} {
		text, err := packaging.Notices(filepath.Join(binaries, description))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(notices, description+".txt"), text, 0o644); err != nil {
			return err
		}
		made, err := packages.Build(description, out)
		if err != nil {
			return err
		}
		for _, path := range made {
			fmt.Println("packages:", path)
		}
	}
	return nil
}
