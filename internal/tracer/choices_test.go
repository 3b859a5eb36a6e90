package tracer

import (
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Nothing is told of a process before it is decided that it is traced, and never of
// one that is not; without a selection there is nothing to decide.
func TestOnlyChosenProcessesAreTold(t *testing.T) {
	chosen, left, open := verbs.ProcessID{TGID: 1}, verbs.ProcessID{TGID: 2}, verbs.ProcessID{TGID: 3}
	for name, cfg := range map[string]Config{
		"processes": {TakesProcess: func(int) bool { return true }},
		"consumers": {TakesConsumer: func(string) bool { return true }},
		"all":       {},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := cfg.withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			tr := &Tracer{cfg: cfg}
			tr.choices.keep(chosen, true)
			tr.choices.keep(left, false)
			all := name == "all"
			for id, want := range map[verbs.ProcessID]bool{chosen: true, left: all, open: all} {
				if tr.shows(id) != want || tr.tells(id) != want {
					t.Errorf("process %d is told of: %v", id.TGID, !want)
				}
			}
			queues := tr.shown([]verbs.QueueInfo{{ID: verbs.QueueID{Process: chosen}}, {ID: verbs.QueueID{Process: left}}, {ID: verbs.QueueID{Process: open}}})
			if (len(queues) == 3) != all || queues[0].ID.Process != chosen {
				t.Errorf("queues %v", queues)
			}
			if undecided := tr.undecided.Load(); (undecided == 1) == all {
				t.Errorf("%d completions of undecided processes", undecided)
			}
		})
	}
}

// Nothing is told of a device that is left out, whoever uses it.
func TestOnlyChosenDevicesAreTold(t *testing.T) {
	cfg, err := Config{TakesDevice: func(name string) bool { return name == "taken" }}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	tr := &Tracer{cfg: cfg}
	for device, want := range map[string]bool{"taken": true, "left": false, "": true} {
		if tr.showsOn(verbs.ProcessID{TGID: 1}, device) != want {
			t.Errorf("what is on %q is told of: %v", device, !want)
		}
		if len(tr.shown([]verbs.QueueInfo{{Device: device}})) == 1 != want {
			t.Errorf("a queue on %q is told of: %v", device, !want)
		}
	}
}
