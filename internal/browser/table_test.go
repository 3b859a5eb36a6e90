//go:build browser

package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
)

const firstRow = `#queues-table tbody tr[aria-rowindex="2"]`

func (o *tab) filter(text string) {
	o.t.Helper()
	eval[bool](o, `(() => { const f = document.getElementById('filter'); f.value = `+quoted(text)+`; f.dispatchEvent(new Event('input')); return true; })()`)
}

func (o *tab) count() string { return o.text("#queues-count") }

func TestFiltersAndSorting(t *testing.T) {
	board, url := serve(t)
	s := newScene(64)
	s.sick = 3
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1440, 900)
	o.open(url)
	o.waitFor(`document.querySelectorAll('#queues-table tbody tr').length > 10`)

	for text, want := range map[string]string{
		"":               "64 queues",
		"mlx5_3":         "8 of 64 queues",
		"rank:3":         "8 of 64 queues",
		"mlx5_3 10.3.2":  "1 of 64 queues",
		"0x1803":         "1 of 64 queues",
		"PAUSE frames":   "1 of 64 queues",
		"81512":          "64 queues",
		"no such thing":  "0 of 64 queues",
		"mlx5_3 mlx5_4":  "0 of 64 queues",
		"41003 mlx5_3 ":  "8 of 64 queues",
		"llm-training 3": "64 queues",
	} {
		o.filter(text)
		assert.Equal(t, want, o.count(), text)
	}
	o.filter("")
	o.run(chromedp.Click(chromedp.CSS("#slow-only")))
	assert.Equal(t, "1 of 64 queues", o.count())
	o.run(chromedp.Click(chromedp.CSS("#slow-only")))

	o.run(chromedp.Click(chromedp.CSS(".incident button")))
	assert.Equal(t, "1 of 64 queues", o.count())
	assert.Contains(t, o.text(firstRow), "0x1803")
	o.filter("")
	assert.Equal(t, "64 queues", o.count())

	header := func(name string) {
		eval[bool](o, `([...document.querySelectorAll('#queues-table th button')].find((b) => b.innerText === `+quoted(name)+`).click(), true)`)
	}
	header("QP")
	assert.Contains(t, o.text(firstRow), "0x1800")
	assert.Equal(t, "ascending", eval[string](o, `document.querySelector('#queues-table th[aria-sort]').getAttribute('aria-sort')`))
	header("QP")
	assert.Contains(t, o.text(firstRow), "0x183f")
	header("Worst")
	assert.Contains(t, o.text(firstRow), "0x1803")
}

// A node with as many queues as the design speaks of: the page holds few rows of
// them, and a change of all of them takes it no longer than some frames.
func TestManyQueues(t *testing.T) {
	board, url := serve(t)
	s := newScene(4096)
	s.sick = 1234
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1440, 900)
	o.prefer("dark")
	o.open(url)
	o.waitFor(`document.getElementById('queues-count').innerText === '4\u2009096 queues'`)
	assert.Less(t, eval[int](o, `document.querySelectorAll('#queues-table tbody tr').length`), 60)
	assert.Contains(t, o.text(firstRow), fmt.Sprintf("0x%x", 0x1800+1234))
	o.shoot("4096-queues")

	// The last row is reached by scrolling, and is the last by its number.
	eval[bool](o, `(document.getElementById('queues-scroll').scrollTop = 1e9, true)`)
	o.waitFor(`document.querySelector('#queues-table tbody tr[aria-rowindex="4097"]') != null`)
	// In a frame that is drawn while it is scrolled there is a row at each place that
	// can be seen.
	gaps := eval[int](o, `(async () => {
		const scroll = document.getElementById('queues-scroll');
		scroll.scrollIntoView();
		let gaps = 0;
		for (let at = 0; at < 100000; at += 2500) {
			scroll.scrollTop = at;
			await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
			const frame = scroll.getBoundingClientRect();
			for (const y of [frame.top + 40, (frame.top + frame.bottom) / 2, frame.bottom - 20]) {
				if (!document.elementFromPoint(frame.left + 50, y)?.closest('tr[aria-rowindex]')) gaps++;
			}
		}
		return gaps;
	})()`, chromedp.EvalAwaitPromise)
	assert.Zero(t, gaps)
	t.Logf("the last view took the page %v ms", eval[float64](o, `performance.getEntriesByName('view').at(-1)?.duration ?? 0`))
}
