package lab

import "testing"

func TestSelectKernelLines(t *testing.T) {
	tests := map[string][]string{
		"":             {"6.1", "6.12"},
		"6.12":         {"6.12"},
		"newest, 6.1":  {"newest", "6.1"},
		"6.1,nonsense": nil,
	}
	for names, want := range tests {
		lines, err := SelectKernelLines(names)
		if (err != nil) != (want == nil) || len(lines) != len(want) {
			t.Errorf("%q: %v, %v", names, lines, err)
			continue
		}
		for i := range want {
			if lines[i].Name != want[i] {
				t.Errorf("%q: %v", names, lines)
			}
		}
	}
}
