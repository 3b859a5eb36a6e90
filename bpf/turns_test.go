package bpf

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// change is a change of threads on a CPU at a time in microseconds, in which the first
// leaves in a state of the kernel.
func change(at, cpu, from, to, state int) string {
	return fmt.Sprintf("%d:%d:%d>%d:%d", at, cpu, from, to, state)
}

func waking(at, cpu, thread int) string { return fmt.Sprintf("%d:%d:%d", at, cpu, thread) }

// From the last step on thread 1 has its CPU again, or waits for it.
func TestWhoHadTheCPU(t *testing.T) {
	const runnable, asleep = 0, 1
	player := turnsPlayer(t)
	var alternating []string
	for i, turn := range []int{1, 10, 11, 12, 13} {
		alternating = append(alternating, change(2000*i, 0, turn, 10+i, runnable))
	}
	alternating[4] = change(8000, 0, 13, 20, runnable)
	for i := range 20 {
		alternating = append(alternating, change(9000+1000*i, 0, 20+i%2, 21-i%2, runnable))
	}
	alternating = append(alternating, change(30000, 0, 20, 1, runnable))
	for name, test := range map[string]struct {
		steps []string
		want  string // Who, for how many microseconds, and 1 where thread 1 still waits.
	}{
		"one": {[]string{change(0, 0, 1, 2, runnable), change(100, 0, 2, 1, runnable)}, "2 100 0"},
		"who had it longest, not first": {[]string{
			change(0, 0, 1, 2, runnable), change(100, 0, 2, 3, runnable), change(400, 0, 3, 1, runnable),
		}, "3 300 0"},
		"taken to another CPU in a turn": {[]string{
			change(0, 0, 1, 2, runnable), change(100, 0, 2, 3, runnable), change(400, 1, 9, 1, runnable),
		}, "3 300 0"},
		"taken to one whose clock was read before": {[]string{
			change(0, 0, 1, 2, runnable), change(100, 0, 2, 3, runnable), change(99, 1, 9, 1, runnable),
		}, "2 100 0"},
		"not who ran while it slept": {[]string{
			change(0, 0, 1, 2, asleep), change(9000, 0, 2, 3, runnable), waking(9500, 0, 1), change(9700, 0, 3, 1, runnable),
		}, "3 200 0"},
		"not who ran while it slept again, soon after": {[]string{
			change(0, 0, 1, 2, asleep), waking(100, 0, 1), change(105, 0, 2, 1, runnable), change(115, 0, 1, 2, asleep),
			change(10000, 0, 2, 3, runnable), waking(10100, 0, 1), change(13000, 0, 3, 1, runnable),
		}, "3 2900 0"},
		"not who ran before a wake-up that was for nothing": {[]string{
			waking(90, 0, 1), change(115, 0, 1, 2, asleep), change(10000, 0, 2, 3, runnable),
			waking(10100, 0, 1), change(13000, 0, 3, 1, runnable),
		}, "3 2900 0"},
		"woken as it left": {[]string{
			waking(90, 0, 1), change(100, 0, 1, 2, asleep), change(400, 0, 2, 3, runnable), change(500, 0, 3, 1, runnable),
		}, "2 300 0"},
		"waits while it is runnable": {[]string{change(0, 0, 1, 2, runnable)}, "2 0 1"},
		"does not while it sleeps again, soon after": {[]string{
			change(0, 0, 1, 2, asleep), waking(100, 0, 1), change(105, 0, 2, 1, runnable), change(115, 0, 1, 2, asleep),
			change(120, 0, 2, 3, runnable),
		}, "0 0 0"},
		"six, of which the last two alternate": {alternating, "20 11000 0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := exec.Command(player, test.steps...).Output()
			if err != nil || string(got) != test.want {
				t.Errorf("played %q: %q, %v, want %q", test.steps, got, err, test.want)
			}
		})
	}
}

// turnsPlayer compiles what plays the steps for this machine.
func turnsPlayer(t *testing.T) string {
	t.Helper()
	target := map[string]string{"amd64": "x86", "arm64": "arm64"}[runtime.GOARCH]
	if _, err := exec.LookPath("gcc"); err != nil || target == "" {
		t.Skip("no gcc on this machine to compile the headers with")
	}
	player := filepath.Join(t.TempDir(), "turns")
	out, err := exec.Command("gcc", "-w", "-std=gnu17", "-D__TARGET_ARCH_"+target, "-I.", "-o", player, "testdata/turns.c").CombinedOutput()
	if err != nil {
		t.Fatalf("compile testdata/turns.c: %v\n%s", err, out)
	}
	return player
}
