//go:build browser

package browser

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// axe is where fetch.sh puts axe-core.
const axe = "../../out/cache/npm/package/axe.min.js"

// violations runs axe-core on the page as it is, and returns what it found.
func violations(t *testing.T, o *tab) []string {
	t.Helper()
	script, err := os.ReadFile(axe)
	require.NoError(t, err, "internal/browser/fetch.sh fetches it")
	o.run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Evaluate[chromedp.Void](string(script))(ctx, target)
		return err
	}))
	return ask(o, chromedp.Evaluate[[]string](`axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
		.then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.target.join(' ') + ': ' + n.failureSummary)))`,
		chromedp.EvalAwaitPromise))
}

// accessible has axe-core find nothing in the page as it is, in both themes. The second
// one stays.
func (o *tab) accessible(state string) {
	o.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		o.prefer(theme)
		assert.Empty(o.t, violations(o.t, o), "%s, %s", state, theme)
	}
}

func TestPageIsAccessible(t *testing.T) {
	board, url := serve(t)
	s := newScene(64)
	s.sick = 3
	s.equip(t)
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1440, 900)
	o.open(url)
	o.waitFor(`document.querySelectorAll('#queues-table tbody tr').length > 10`)
	eval[bool](o, `document.getElementById('topology-all').open = true`)
	o.waitFor(`document.querySelectorAll('#topology-tables table').length === 3`)
	o.accessible("everything")
}

// What a mouse can set off, keys can.
func TestKeyboard(t *testing.T) {
	board, url := serve(t)
	s := newScene(200)
	s.sick = 3
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1440, 900)
	o.open(url)
	o.waitFor(`document.querySelectorAll('#queues-table tbody tr').length > 10`)

	o.run(chromedp.KeyEvent("/"))
	assert.Equal(t, "filter", eval[string](o, `document.activeElement.id`))
	// The protocol types the key also where the page prevents that.
	o.filter("")
	o.run(chromedp.KeyEvent("0x1805"))
	o.waitFor(`document.getElementById('queues-count').innerText === '1 of 200 queues'`)

	var reached []string
	for range 60 {
		o.run(chromedp.KeyEvent(kb.Tab))
		reached = append(reached, eval[string](o, `document.activeElement.id || document.activeElement.innerText`))
	}
	all := strings.Join(reached, "\n")
	for _, control := range []string{
		"pause", "theme", "Show queues", "2 min", "30 min", "latency-plot", "filter", "slow-only", "queues-scroll", "p99.9", "Devices and all routes as text",
	} {
		assert.Contains(t, all, control)
	}

	eval[bool](o, `(document.getElementById('pause').focus(), true)`)
	o.run(chromedp.KeyEvent(kb.Enter))
	assert.Equal(t, "true", eval[string](o, `document.getElementById('pause').getAttribute('aria-pressed')`))
	assert.Contains(t, o.text("#connection"), "Paused")
	at := o.text("#clock")
	look := eval[float64](o, `performance.now()`)
	o.waitFor(fmt.Sprintf(`performance.now() > %f + 2500`, look))
	assert.Equal(t, at, o.text("#clock"), "it stands still")
	o.run(chromedp.KeyEvent(kb.Enter))
	o.waitFor(fmt.Sprintf(`document.getElementById('clock').innerText !== %s`, quoted(at)))
}

// What the heat map tells where a mouse points, it tells where the arrow keys lead.
func TestHeatMapIsReadByKeys(t *testing.T) {
	board, url := serve(t)
	s := newScene(16)
	s.sick = 3
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1440, 900)
	o.open(url)
	o.waitFor(`document.querySelectorAll('#queues-table tbody tr').length > 10`)
	eval[bool](o, `(document.getElementById('pause').click(), document.getElementById('latency-plot').focus(), true)`)
	press := func(key string) string {
		o.run(chromedp.KeyEvent(key))
		return o.text("#latency-cell")
	}
	cell := regexp.MustCompile(`^(\d\d:\d\d:\d\d), (\S+ [µm]s) to (\S+ [µm]s): (\S+) completions?(, \d+ slow in this second)?$`)
	// The page tells no date, and midnight may lie between.
	since := func(late, early time.Time) time.Duration { return (late.Sub(early) + 24*time.Hour) % (24 * time.Hour) }
	read := func(text string) (at time.Time, from, to, count string) {
		t.Helper()
		parts := cell.FindStringSubmatch(text)
		require.NotNil(t, parts, text)
		at, err := time.Parse(time.TimeOnly, parts[1])
		require.NoError(t, err)
		return at, parts[2], parts[3], parts[4]
	}
	// The slowest of the last second are those of the sick queue.
	first := press(kb.ArrowLeft)
	last, slowest, edge, count := read(first)
	assert.Contains(t, first, ", 40 slow in this second")
	assert.NotEqual(t, "0", count)
	assert.Contains(t, edge, "µs")
	before, same, _, _ := read(press(kb.ArrowLeft))
	assert.Positive(t, since(last, before))
	assert.Less(t, since(last, before), 10*time.Second)
	assert.Equal(t, slowest, same)
	assert.Equal(t, first, press(kb.ArrowRight))
	assert.Equal(t, first, press(kb.ArrowRight), "there is none later")
	_, _, below, _ := read(press(kb.ArrowDown))
	assert.Equal(t, slowest, below)
	assert.Equal(t, first, press(kb.ArrowUp))
	earlier, _, _, _ := read(press(kb.PageUp))
	assert.GreaterOrEqual(t, since(last, earlier), 29*time.Second)
	begin, _, _, none := read(press(kb.Home))
	assert.Greater(t, since(last, begin), 7*time.Minute)
	assert.Equal(t, "0", none, "nothing was slow then")
	for range 40 {
		press(kb.ArrowDown)
	}
	_, _, _, many := read(o.text("#latency-cell"))
	assert.NotEqual(t, "0", many)
	assert.True(t, eval[bool](o, `document.querySelector('.u-cursor-x').getBoundingClientRect().left > 0`), "the cell is marked")
	o.shootPart("part-heatmap-keys", "#latency")

	// The page goes on, the cell stays the same.
	end := press(kb.End)
	eval[bool](o, `(document.getElementById('pause').click(), document.getElementById('latency-plot').focus(), true)`)
	press(kb.ArrowLeft)
	held := press(kb.ArrowLeft)
	at := o.text("#clock")
	o.waitFor(`document.getElementById('clock').innerText !== ` + quoted(at) + ` && performance.getEntriesByName('view').length > 0`)
	assert.Equal(t, held, o.text("#latency-cell"))
	assert.NotEqual(t, end, held)
	eval[bool](o, `(document.activeElement.blur(), true)`)
	assert.Empty(t, o.text("#latency-cell"))
}

// What the picture of the topology tells where a mouse points, is there as text.
func TestTopologyIsReadAsText(t *testing.T) {
	board, url := serve(t)
	s := newScene(64)
	s.sick = 3
	s.equip(t)
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1440, 900)
	o.open(url)
	o.waitFor(`document.querySelectorAll('.topology .route').length > 20`)
	assert.Zero(t, eval[int](o, `document.querySelectorAll('#topology-tables table').length`), "it is made when it is asked for")
	eval[bool](o, `(document.querySelector('#topology-all summary').focus(), true)`)
	o.run(chromedp.KeyEvent(kb.Enter))
	o.waitFor(`document.querySelectorAll('#topology-tables table').length === 3`)
	rows := strings.Join(o.texts("#topology-tables tbody tr"), "\n")
	for _, part := range []string{
		"mlx5_11\t1\t", "GT/s x", ", degraded", "port 1 ACTIVE 400 Gb/s",
		"python3 41003\t" + s.queues[3].Device + "\t8\t", "python3 41005\t" + s.queues[5].Device + "\t8\t", s.queues[3].Device + "\t10.3.0.1\t1\t",
	} {
		assert.Contains(t, rows, part)
	}
	// Each picture's title is one, with all that it has to tell.
	for _, facts := range o.titles(".topology .nic") {
		assert.Contains(t, facts, "GT/s x")
		assert.Contains(t, facts, "port 1 ACTIVE")
	}
	assert.Equal(t, 8, eval[int](o, `document.querySelectorAll('.topology .nic title').length`))
	crossing := o.texts("#topology-tables table:nth-child(2) tbody tr td:last-child")
	assert.ElementsMatch(t, []string{"0", "0", "0", "0", "0", "8", "0", "0"}, crossing)
	// It stays open while the picture is drawn anew.
	eval[bool](o, `(document.querySelector('#topology-plot').firstElementChild.id = 'drawn-before', true)`)
	o.waitFor(`document.getElementById('drawn-before') === null`)
	assert.True(t, eval[bool](o, `document.getElementById('topology-all').open`))
	o.shootPart("part-topology-text", "#topology")
}
