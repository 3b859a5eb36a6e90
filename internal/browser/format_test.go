//go:build browser

package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
)

// Numbers as people read them, in the words of the page's own modules.
func TestFormats(t *testing.T) {
	_, url := serve(t)
	o := openTab(t, 800, 600)
	o.open(url)
	for expression, want := range map[string]string{
		"duration(0)":              "–",
		"duration(85)":             "85 ns",
		"duration(1907)":           "1.91 µs",
		"duration(1900)":           "1.9 µs",
		"duration(10_800)":         "10.8 µs",
		"duration(456_123)":        "456 µs",
		"duration(999_600)":        "1000 µs",
		"duration(4_200_000)":      "4.2 ms",
		"duration(90_000_000_000)": "90 s",
		"span(999)":                "1 s",
		"span(61_000)":             "1 min 1 s",
		"span(120_000)":            "2 min",
		"span(754_000)":            "12 min",
		"span(7_500_000)":          "2 h 5 min",
		"count(0)":                 "0",
		"count(9_999)":             "9\u2009999",
		"count(12_345)":            "12.3 k",
		"count(4_100_000)":         "4.1 M",
		"bits(50e9)":               "400 Gb/s",
		"bits(0)":                  "0 b/s",
		"bits(1250)":               "10 kb/s",
		"size(32768)":              "32 KiB",
		"size(0)":                  "0 B",
		"percent(0.998)":           "99.8 %",
		"hex(6386)":                "0x18f2",
		"plural(1, 'queue')":       "1 queue",
		"plural(4096, 'queue')":    "4\u2009096 queues",
	} {
		got := eval[string](o, fmt.Sprintf(`import('./format.js').then((m) => m.%s)`, expression), chromedp.EvalAwaitPromise)
		assert.Equal(t, want, got, expression)
	}
}

// The lines of the heat map are quantiles of its columns.
func TestQuantilesOfColumns(t *testing.T) {
	_, url := serve(t)
	o := openTab(t, 800, 600)
	o.open(url)
	for arguments, want := range map[string]string{
		"{first: 1, counts: [99, 0, 1]}, [1, 2, 4, 8, 16], 0.5":  "2",
		"{first: 1, counts: [99, 0, 1]}, [1, 2, 4, 8, 16], 0.99": "2",
		"{first: 1, counts: [98, 0, 2]}, [1, 2, 4, 8, 16], 0.99": "8",
		"{first: 0, counts: []}, [1, 2], 0.5":                    "null",
	} {
		got := eval[string](o, fmt.Sprintf(`import('./columns.js').then((m) => String(m.quantile(%s)))`, arguments), chromedp.EvalAwaitPromise)
		assert.Equal(t, want, got, arguments)
	}
}
