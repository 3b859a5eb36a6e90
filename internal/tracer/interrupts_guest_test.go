//go:build guest

package tracer_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// The programs on interrupts stand on this kernel while something is slow.
func TestInterruptsAreWatched(t *testing.T) {
	tr, err := tracer.Start(t.Context(), tracer.InterruptsFor(tracer.Config{}, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := tracer.BeSlow(tr); err != nil {
		t.Fatal(err)
	}
	if probes, since, err := tracer.Interrupts(tr); err != nil || probes != 4 || since == 0 {
		t.Errorf("%d probes on interrupts, watched since %d, %v", probes, since, err)
	}
	await(t, "interrupts are not watched any more", func() error {
		probes, since, err := tracer.Interrupts(tr)
		if probes != 0 || since != 0 {
			err = errors.Join(err, fmt.Errorf("%d probes, watched since %d", probes, since))
		}
		return err
	})
}
