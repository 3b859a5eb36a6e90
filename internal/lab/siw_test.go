package lab

import "testing"

func TestSourcePackage(t *testing.T) {
	for release, want := range map[string]string{
		"6.1.0-50-amd64":      "linux-source-6.1",
		"6.12.95+deb12-amd64": "linux-source-6.12",
		"7.3":                 "",
		"":                    "",
	} {
		got, err := sourcePackage(release)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", release, got, err, want)
		}
	}
}
