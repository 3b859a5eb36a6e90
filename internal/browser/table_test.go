//go:build browser

package browser

import (
	"fmt"
	"slices"
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
		"pid:41003":      "8 of 64 queues",
		"pid:4100":       "0 of 64 queues",
		"job:81512":      "64 queues",
		"job:8151":       "0 of 64 queues",
		"device:mlx5_3":  "8 of 64 queues",
		"device:mlx5":    "0 of 64 queues",
		"rank:":          "64 queues",
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

// The same words mean the same to rdmaradar top.
func TestFilterComparesKeysWhole(t *testing.T) {
	_, url := serve(t)
	o := openTab(t, 800, 600)
	o.open(url)
	for text, want := range map[string]string{
		"rank:7":                "1",
		"RANK:70":               "2",
		"mlx5_1 rank:77":        "3",
		"rank:":                 "1 2 3",
		"rank:77 pid:7790":      "3",
		"pid:410":               "1",
		"pid:41":                "",
		"job:81":                "1",
		"device:mlx5_1":         "1 4",
		"mlx5_1":                "1 2 3 4",
		"fe80::":                "1 2 3",
		"device:mlx5_1 rank:70": "",
	} {
		got := eval[string](o, `import('./rows.js').then((m) => m.filterRows([
			{qp: 1, rank: 7, pid: 410, job: '81', device: 'mlx5_1', peer: 'fe80::7'}, {qp: 2, rank: 70, pid: 4100, job: '815', device: 'mlx5_10', peer: 'fe80::7'},
			{qp: 3, rank: 77, pid: 7790, job: '4281', device: 'mlx5_11', peer: 'fe80::7'}, {qp: 4, process: 'nvme_rdma (kernel)', job: '', device: 'mlx5_1', peer: ''},
		].map((row) => ({process: '', service: '', remote: 0, type: 'RC', state: 'synced', cause: '', ...row})), {text: `+quoted(text)+`}).map((row) => row.qp).join(' '))`,
			chromedp.EvalAwaitPromise)
		assert.Equal(t, want, got, text)
	}
}

// No duration is cut: without its unit it is another one.
func TestDurationsFitTheirCells(t *testing.T) {
	board, url := serve(t)
	s := newScene(64)
	s.sick = 3
	defer board.Show(s.state)()
	s.play(t)
	o := openTab(t, 1440, 900)
	o.open(url)
	o.waitFor(`document.querySelector('#queues-table tr.slow') != null`)
	o.run(chromedp.Click(chromedp.CSS("#pause")))
	// From 1 ns to 999 s, with as many digits as there are, in each column that has
	// durations, also in the bold letters of what is slow.
	cut := eval[[]string](o, `import('./format.js').then(({duration}) => {
		const cells = [...document.querySelectorAll('#queues-table tr.slow td.time, #queues-table tr.slow td.lost')];
		const cut = cells.length === 5 ? [] : ['there are ' + cells.length + ' cells'];
		for (let size = 1; size <= 1e11; size *= 10) {
			for (const ns of [1, 1.11, 2.04, 4.44, 8.88, 9.949, 9.99, 9.999].map((digits) => Math.round(digits * size)).filter((ns) => ns <= 999e9)) {
				for (const cell of cells) cell.textContent = duration(ns);
				cut.push(...cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.className + ' ' + cell.textContent));
			}
		}
		return cut;
	})`, chromedp.EvalAwaitPromise)
	assert.Empty(t, cut)
	assert.Equal(t, "00:00:00", eval[string](o, `(() => {
		const cell = document.querySelector('#queues-table tr.slow td.clock');
		cell.textContent = '00:00:00';
		return cell.scrollWidth > cell.clientWidth ? 'it is cut' : cell.textContent;
	})()`))

	// What is cut in another column can be read in full, and what is not has no title.
	const hover = `(text) => {
		const cell = document.querySelector('#queues-table tr.slow td.process');
		cell.textContent = text;
		cell.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
		return cell.title;
	}`
	assert.Empty(t, eval[string](o, `(`+hover+`)('sh 7')`))
	for _, text := range []string{"a process with a long name 41003", "WWWWWWWWWWWW"} {
		assert.Equal(t, text, eval[string](o, `(`+hover+`)(`+quoted(text)+`)`))
	}
	assert.Empty(t, eval[[]string](o, `[...document.querySelectorAll('#queues-table th')].flatMap((th) => {
		th.querySelector('button').click();
		return th.scrollWidth > th.clientWidth ? [th.innerText] : [];
	})`), "titles of columns, with the arrow of the order")
}

// medianLimit is how long a view may take the page on a busy machine with two cores: nine
// frames, once a second.
const medianLimit = 150.0

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
	took := eval[[]float64](o, `new Promise((done) => {
		const all = [];
		new PerformanceObserver((list, observer) => {
			all.push(...list.getEntriesByName('view').map((entry) => entry.duration));
			if (all.length < 9) return;
			observer.disconnect();
			done(all);
		}).observe({type: 'measure'});
	})`, chromedp.EvalAwaitPromise)
	slices.Sort(took)
	t.Logf("views took the page %.0f ms", took)
	assert.Less(t, took[len(took)/2], medianLimit)
}
