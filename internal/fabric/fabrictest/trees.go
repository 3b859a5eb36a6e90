package fabrictest

import (
	"embed"
	"strings"
	"testing"
)

//go:embed testdata/*.sysfs
var recordings embed.FS

// The shapes of machines. README.md of testdata says which are real recordings
// and after what the others are composed.
const (
	TwoSockets = "two-sockets-eight-connectx7"
	SingleRoCE = "single-roce"
	Bond       = "bond"
	SRIOV      = "sr-iov"
	SoftRoCE   = "soft-roce"
	EFA        = "efa"
	NoRDMA     = "no-rdma"
)

// Names returns the names of all trees.
func Names() []string {
	return []string{TwoSockets, SingleRoCE, Bond, SRIOV, SoftRoCE, EFA, NoRDMA}
}

// Tree lays out the tree with that name and returns the root of its sysfs.
func Tree(t testing.TB, name string) string {
	t.Helper()
	return LayOut(t, recording(t, name))
}

func recording(t testing.TB, name string) string {
	t.Helper()
	if name == TwoSockets {
		var text strings.Builder
		composeTwoSockets(&text)
		return text.String()
	}
	text, err := recordings.ReadFile("testdata/" + name + ".sysfs")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
