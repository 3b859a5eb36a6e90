package lab

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestMissingPackagesNamesEachOnce(t *testing.T) {
	look := func(program string) (string, error) {
		if program == "qemu-system-x86_64" || program == "depmod" || program == "modprobe" {
			return "", errors.New("not found")
		}
		return "/usr/bin/" + program, nil
	}
	if got, want := missingPackages(hostTools(), look), []string{"qemu-system-x86", "kmod"}; !slices.Equal(got, want) {
		t.Errorf("missing %v, want %v", got, want)
	}
}

func TestMirrorFromTargets(t *testing.T) {
	tests := []struct{ name, targets, want string }{
		{
			"bookworm", "bookworm main http://a.example/debian/\nbookworm-updates main http://b.example/debian/\n",
			"http://a.example/debian/",
		},
		{
			"newer host", "trixie-security main http://s.example/debian-security/\ntrixie main http://a.example/debian\nsid contrib http://c.example/debian\n",
			"http://a.example/debian",
		},
		{"other distribution", "noble main http://a.example/ubuntu/\n", ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := mirrorFromTargets(tt.targets)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestFindKernelLine(t *testing.T) {
	if l, err := FindKernelLine("6.12"); err != nil || l.Suite != "bookworm-backports" {
		t.Errorf("6.12: %+v, %v", l, err)
	}
	if _, err := FindKernelLine("5.4"); err == nil || !strings.Contains(err.Error(), "6.1, 6.12") {
		t.Errorf("5.4: %v", err)
	}
}
