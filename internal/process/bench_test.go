package process

import (
	"os"
	"testing"
)

func BenchmarkFacts(b *testing.B) {
	reader := NewReader("")
	for b.Loop() {
		if _, err := reader.Facts(os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}
