//go:build browser

package browser

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	chromium    = "chromium"
	screenshots = "../../out/browser"
	// patience is how long a page is waited for on a busy machine, where that is no
	// sign of a fault.
	patience = time.Minute
)

// tab is a page in a browser of its own. It keeps what the page complains of.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// openTab starts Chromium with a window of that size. What the page complains of
// fails the test at its end: errors of scripts, refused loads, broken policies.
func openTab(t *testing.T, width, height int) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium),
		// Root has no sandbox in Chromium; the page is our own.
		chromedp.NoSandbox,
		chromedp.WindowSize(width, height),
	)
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	o := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		cancelAllocator()
		assert.Empty(t, o.complained(), "the page complained")
	})
	require.NoError(t, chromedp.Listen(ctx, o.listen))
	o.run(call(log.Enable, cdp.Empty{}), chromedp.EmulateViewport(int64(width), int64(height)))
	return o
}

// call is a command of the protocol that answers nothing.
func call[P any](command cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

func (o *tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		o.complain(e.ExceptionDetails.Text + " " + e.ExceptionDetails.Exception.Description)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, argument := range e.Args {
				o.complain(string(argument.Value) + argument.Description)
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			o.complain(e.Entry.Text + " " + e.Entry.URL)
		}
	}
}

func (o *tab) complain(of string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.complaints = append(o.complaints, of)
}

func (o *tab) complained() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.complaints
}

// forgive forgets complaints, after something was done that has to cause them.
func (o *tab) forgive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.complaints = nil
}

func (o *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.ctx, patience)
	defer cancel()
	require.NoError(o.t, chromedp.Do(ctx, actions...))
}

// ask runs an action that has an answer.
func ask[T any](o *tab, action chromedp.Action[T]) T {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.ctx, patience)
	defer cancel()
	answer, err := chromedp.Run(ctx, action)
	require.NoError(o.t, err)
	return answer
}

// open loads the page and waits for the first view.
func (o *tab) open(url string) {
	o.t.Helper()
	o.run(chromedp.Navigate(url))
	o.waitFor(`document.getElementById('connection').classList.contains('live')`)
}

// eval is the value of an expression.
func eval[T any](o *tab, expression string, options ...chromedp.EvaluateOption) T {
	o.t.Helper()
	return ask(o, chromedp.Evaluate[T](expression, options...))
}

// waitFor waits until an expression is true.
func (o *tab) waitFor(expression string) {
	o.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if eval[bool](o, expression) {
			return
		}
	}
	o.t.Fatalf("not within %v: %s; the page says:\n%s", patience, expression, o.text("main"))
}

// text is what can be read in an element.
func (o *tab) text(selector string) string {
	o.t.Helper()
	return eval[string](o, `(() => { const e = document.querySelector(`+quoted(selector)+`); return e?.innerText ?? e?.textContent ?? ''; })()`)
}

// texts are those of all elements that the selector finds.
func (o *tab) texts(selector string) []string {
	o.t.Helper()
	return eval[[]string](o, `[...document.querySelectorAll(`+quoted(selector)+`)].map((e) => e.innerText)`)
}

// quoted is a text as a literal of JavaScript.
func quoted(text string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`", "$", "\\$").Replace(text) + "`"
}

// prefer sets the theme of the system.
func (o *tab) prefer(theme string) {
	o.run(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
	}))
}

// shoot keeps a screenshot of the whole page.
func (o *tab) shoot(name string) {
	o.t.Helper()
	o.keep(name, ask(o, chromedp.FullScreenshot(100)))
}

// shootWindow keeps what is seen of the page without scrolling.
func (o *tab) shootWindow(name string) {
	o.t.Helper()
	o.keep(name, ask(o, chromedp.CaptureScreenshot()))
}

// shootPart keeps a screenshot of one element.
func (o *tab) shootPart(name, selector string) {
	o.t.Helper()
	o.keep(name, ask(o, chromedp.Screenshot(selector)))
}

func (o *tab) keep(name string, picture []byte) {
	o.t.Helper()
	require.NoError(o.t, os.MkdirAll(screenshots, 0o755))
	require.NoError(o.t, os.WriteFile(filepath.Join(screenshots, name+".png"), picture, 0o644))
}
