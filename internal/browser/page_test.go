//go:build browser

package browser

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Whoever is called at night sees where it is slow, since when and why without
// doing anything.
func TestIncidentIsSeenAtOnce(t *testing.T) {
	board, url := serve(t)
	s := newScene(16)
	s.sick = 3
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1440, 900)
	for _, theme := range []string{"dark", "light"} {
		o.prefer(theme)
		o.open(url)
		o.waitFor(`document.querySelectorAll('#queues-table tbody tr').length > 10`)
		o.shoot("incident-" + theme)
	}
	o.shootWindow("window-incident")
	assert.Equal(t, "One thing is wrong", o.text("#headline-title"))
	incident := o.text(".incident")
	for _, part := range []string{"QP 0x1803 on mlx5_3 (rank 3)", "487 µs instead of 2.2 µs", "Since", "pause frames (PFC) received", "rx_prio3_pause rose"} {
		assert.Contains(t, incident, part)
	}
	first := o.text("#queues-table tbody tr:nth-child(2)")
	assert.Contains(t, first, "0x1803", "the slow queue is the first row")
}

// Where things are, who talks to whom, and which process polls on the wrong socket.
func TestTopology(t *testing.T) {
	board, url := serve(t)
	s := newScene(64)
	s.sick = 3
	s.equip(t)
	defer board.Show(s.state)()
	s.play(t)
	for _, theme := range []string{"dark", "light"} {
		o := openTab(t, 1440, 900)
		o.prefer(theme)
		o.open(url)
		o.waitFor(`document.querySelectorAll('.topology .route').length > 20`)
		assert.Equal(t, 2, eval[int](o, `document.querySelectorAll('.topology .socket').length`))
		assert.Equal(t, 8, eval[int](o, `document.querySelectorAll('.topology .nic').length`))
		assert.Equal(t, 8, eval[int](o, `document.querySelectorAll('.topology .gpu').length`))
		crossing := o.titles(".topology .crossing")
		require.Len(t, crossing, 1)
		assert.Contains(t, crossing[0], "python3 41005")
		hot := o.titles(".topology .hot-3")
		require.Len(t, hot, 2, "from the process to its device, and on to the peer")
		assert.Contains(t, hot[0], "python3 41003")
		assert.Contains(t, o.text("#routes tbody tr:first-child"), s.queues[3].Device)
		o.shoot("topology-" + theme)
		o.shootPart("part-topology", "#topology-plot")
	}
}

// titles are what drawings say of their parts.
func (o *tab) titles(selector string) []string {
	o.t.Helper()
	return eval[[]string](o, `[...document.querySelectorAll(`+quoted(selector+" title")+`)].map((e) => e.textContent)`)
}

func TestHealthyNode(t *testing.T) {
	board, url := serve(t)
	s := newScene(64)
	s.state.Impair(errors.New("kernel.perf_event_paranoid is 3 and CAP_SYS_ADMIN is missing: the RDMA core in the kernel is not probed"))
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1440, 900)
	o.prefer("dark")
	o.open(url)
	assert.Equal(t, "Nothing is slow", o.text("#headline-title"))
	assert.Contains(t, o.text("#headline-impaired"), "Not everything can be seen: kernel.perf_event_paranoid is 3")
	o.accessible("healthy, and impaired")
	o.shoot("healthy")
}

func TestStatesWithoutData(t *testing.T) {
	board, url := serve(t)
	o := openTab(t, 1280, 720)
	o.open(url)
	assert.Equal(t, "No rdma receiver feeds this page", o.text("#headline-title"))
	o.accessible("no receiver")
	o.shoot("no-receiver")

	starting := board.Show(radar.NewState())
	o.waitFor(`document.getElementById('headline-title').innerText === 'Tracing is starting'`)
	o.accessible("starting")
	starting()

	s := newScene(0)
	s.look(s.since)
	end := board.Show(s.state)
	o.waitFor(`document.getElementById('headline-title').innerText === 'No RDMA queue is in use'`)
	o.accessible("no queues, of a machine that was not read")
	s.state.Equip(radar.MachineOf(nil, nil))
	o.waitFor(`document.getElementById('headline-title').innerText === 'This node has no RDMA device'`)
	o.accessible("no device")
	o.shoot("no-device")
	s.equip(t)
	s.collect()
	o.waitFor(`document.querySelectorAll('.topology .nic').length === 8`)
	o.accessible("no queues")
	o.shoot("no-queues")

	s.state.Fail(errors.New("RDMA tracing cannot start: CAP_BPF and CAP_PERFMON are missing: run the collector as root, " +
		"or with AmbientCapabilities=CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH"))
	o.waitFor(`document.getElementById('headline-title').innerText === 'Nothing is traced on this node'`)
	assert.Contains(t, o.text("#headline-text"), "CAP_BPF")
	o.accessible("nothing is traced")
	o.shoot("unprivileged")
	end()
	o.waitFor(`document.getElementById('headline-title').innerText === 'No rdma receiver feeds this page'`)
}

// Without the token, or by another name, not even the frame of the page is there.
func TestStrangersGetNothing(t *testing.T) {
	board, url := serve(t)
	s := newScene(4)
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1280, 720)
	for _, foreign := range []string{
		strings.Replace(url, token, "AnotherTokenOfTheSameLength"[:len(token)], 1),
		strings.Replace(url, token+"/", "", 1),
		strings.Replace(url, "localhost", "radar.localhost", 1),
	} {
		o.run(chromedp.Navigate(foreign))
		assert.Zero(t, eval[int](o, `document.querySelectorAll('main, script, link').length`), foreign)
		assert.NotContains(t, o.text("body"), "gpu-017", foreign)
	}
	// Refusals are errors in the console.
	o.forgive()
}

// A name that a process gave itself is text wherever it is shown.
func TestHostileNamesAreText(t *testing.T) {
	board, url := serve(t)
	s := newScene(8)
	s.name, s.sick = hostile, 3
	defer board.Show(s.state)()
	s.play(t)
	s.state.Tell(radar.Incident{
		ID: "666", Open: true, Subject: hostile, Happened: hostile, Title: hostile, Cause: hostile, Remedy: hostile,
		For: []string{hostile}, First: time.Now().UnixMilli(), Last: time.Now().UnixMilli(), Lost: int64(time.Hour),
	})
	s.state.Tell(radar.Incident{ID: "667", Subject: hostile, Happened: hostile, Title: hostile, Last: time.Now().UnixMilli()})
	o := openTab(t, 1440, 900)
	o.open(url)
	o.waitFor(`document.querySelectorAll('.incident').length === 2`)
	eval[bool](o, `document.querySelector('.over').open = true`)
	for _, place := range []string{"#queues-table", ".incident", ".over", "#slowest", ".topology"} {
		assert.Contains(t, o.text(place), hostile, place)
	}
	assert.Zero(t, eval[int](o, `document.querySelectorAll('main img, main b').length`))
	o.shoot("hostile-names")
}

// What is on the screen after the collector is gone says that it is old.
func TestLostConnectionIsSaid(t *testing.T) {
	board, url := serve(t)
	s := newScene(16)
	s.sick = 3
	s.equip(t)
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1280, 720)
	o.open(url)
	o.waitFor(`document.getElementById('connection').innerText.includes('Live')`)
	o.waitFor(`document.querySelector('.topology') != null`)
	assert.Empty(t, o.text("#old"))
	at := o.text("#clock")
	require.NoError(t, board.(component.Component).Shutdown(t.Context()))
	o.waitFor(`document.getElementById('connection').innerText.includes('Connection lost')`)
	assert.Contains(t, o.text("#old"), "What is below is old, of "+at[:len("15:04")])
	o.accessible("connection lost")
	o.shoot("connection-lost")
	// Wherever one reads.
	eval[bool](o, `(scrollTo(0, 1e6), true)`)
	assert.True(t, eval[bool](o, `(({top, bottom}) => top >= 0 && bottom < innerHeight)(document.getElementById('old').getBoundingClientRect())`))
	o.shootWindow("window-connection-lost")
	o.forgive()
}

// What observing takes, and how much of the queues is known.
func TestOverheadAndStatesOfQueues(t *testing.T) {
	board, url := serve(t)
	s := newScene(64)
	for _, unsynced := range []int{5, 17, 40} {
		s.queues[unsynced].State = verbs.QueueUnsynced
	}
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1440, 900)
	o.prefer("dark")
	o.open(url)
	o.waitFor(`document.getElementById('overhead').innerText.includes(' cores')`)
	said := o.text("#overhead")
	for _, part := range []string{
		"61 synced; 3 unsynced: seen from mid-stream", "12 untracked: over the bound", "max_agent_cpu_cores", "up to 1.4 % of a thread's time", "in mlx5;", "max_thread_cpu_ratio",
	} {
		assert.Contains(t, said, part)
	}
	o.shootPart("part-observation", "#observation")
}

// A tab in the background costs the node nothing.
func TestHiddenTabHasNoStream(t *testing.T) {
	board, url := serve(t)
	s := newScene(4)
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1280, 720)
	o.open(url)
	hide := func(hidden string) {
		eval[bool](o, `Object.defineProperty(document, 'hidden', {value: `+hidden+`, configurable: true}) && document.dispatchEvent(new Event('visibilitychange'))`)
	}
	require.True(t, s.state.Watched())
	hide("true")
	assert.Eventually(t, func() bool { return !s.state.Watched() }, patience, 50*time.Millisecond)
	hide("false")
	assert.Eventually(t, s.state.Watched, patience, 50*time.Millisecond)
	assert.Equal(t, "Live", o.text("#connection"))
}
