package testprogram_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/testprogram"
)

// Many write and run programs at once, and none is refused.
func TestProgramsRunAtOnce(t *testing.T) {
	path, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for n := range 25 {
				program := filepath.Join(dir, strconv.Itoa(w)+"-"+strconv.Itoa(n))
				if err := testprogram.Write(program, content, 0o700); err != nil {
					t.Error(err)
					return
				}
				if err := exec.Command(program).Run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
}
