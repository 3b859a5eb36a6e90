//go:build browser

package browser

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

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
	return ask(o, chromedp.Evaluate[[]string](`axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']})
		.then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.target.join(' ') + ': ' + n.failureSummary)))`,
		chromedp.EvalAwaitPromise))
}

func TestPageIsAccessible(t *testing.T) {
	board, url := serve(t)
	s := newScene(64)
	s.sick = 3
	end := board.Show(s.state)
	s.play(t)
	o := openTab(t, 1440, 900)
	for _, theme := range []string{"dark", "light"} {
		o.prefer(theme)
		o.open(url)
		o.waitFor(`document.querySelectorAll('#queues-table tbody tr').length > 10`)
		assert.Empty(t, violations(t, o), theme)
	}
	end()
	o.waitFor(`document.getElementById('headline-title').innerText === 'No rdma receiver feeds this page'`)
	assert.Empty(t, violations(t, o), "without a receiver")
}

// Everything that a mouse can do, keys can.
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
	for _, control := range []string{"pause", "theme", "Show queues", "2 min", "30 min", "filter", "slow-only", "queues-scroll", "p99.9"} {
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
