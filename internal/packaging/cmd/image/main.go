// Command image makes the container image, as an OCI image layout.
//
//	image -repository . -binaries bin -out out/image
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
	out := flag.String("out", "out/image", "directory of the layout; what is in it goes")
	flag.Parse()
	if err := run(*repository, *binaries, *out); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
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
	binary := filepath.Join(binaries, "otelcol-rdma")
	notices, err := packaging.Notices(binary)
	if err != nil {
		return err
	}
	image, err := packaging.Image{Repository: repository, Binary: binary, Notices: notices, Version: version, Time: when}.Build()
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("image: %s %s %s\n", out, version, digest)
	return packaging.WriteLayout(image, out, version)
}
