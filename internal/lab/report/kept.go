package report

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// WriteKept writes into kept.txt of a directory how many of the results are those of
// earlier runs. There is no such file where none is.
func (r Report) WriteKept(dir string) error {
	path := filepath.Join(dir, "kept.txt")
	kept, oldest := 0, time.Time{}
	for _, k := range r.Kernels {
		if k.KeptFrom == nil {
			continue
		}
		if kept++; kept == 1 || k.KeptFrom.Before(oldest) {
			oldest = *k.KeptFrom
		}
	}
	if kept == 0 {
		return removed(path)
	}
	line := fmt.Sprintf("KEPT the results of %d of %d boots, the oldest from %s: nothing that decides them has changed; make lab boots all\n",
		kept, len(r.Kernels), oldest.UTC().Format(time.DateTime+" UTC"))
	return os.WriteFile(path, []byte(line), 0o644)
}
