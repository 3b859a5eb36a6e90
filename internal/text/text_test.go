package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const limit = 255

func TestClean(t *testing.T) {
	for foreign, want := range map[string]string{
		"name\n":                       "name",
		"two words":                    "two words",
		"größe":                        "größe",
		"\x1b[31mred":                  "\uFFFD[31mred",
		"\x1b]0;title\x07":             "\uFFFD]0;title\uFFFD",
		"line\nbreak\ttab":             "line\uFFFDbreak\uFFFDtab",
		"over\rwritten\b":              "over\uFFFDwritten\uFFFD",
		"\xff\xfe":                     "\uFFFD\uFFFD",
		"C1 byte \x9b31m":              "C1 byte \uFFFD31m",
		"C1 \u009b31m \u0085":          "C1 \uFFFD31m",
		"delete\x7f":                   "delete\uFFFD",
		"right\u202eleft":              "right\uFFFDleft",
		"isolate\u2066\u2069":          "isolate\uFFFD\uFFFD",
		"paragraph\u2029":              "paragraph",
		"zero\u200bwidth":              "zero\uFFFDwidth",
		"surrogate \xed\xa0\x80":       "surrogate \uFFFD\uFFFD\uFFFD",
		"nul\x00":                      "nul\uFFFD",
		strings.Repeat("a", 300):       strings.Repeat("a", 255),
		strings.Repeat("ä", 200):       strings.Repeat("ä", 127),
		strings.Repeat(" ", 300) + "a": "a",
	} {
		assert.Equal(t, want, Clean(foreign, limit), "%q", foreign)
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"name\n", "\x1b[31m", "\xff", "\u202e", strings.Repeat("ä", 200)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, foreign string) {
		got := Clean(foreign, limit)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), limit)
		require.Equal(t, -1, strings.IndexFunc(got, func(r rune) bool { return r != utf8.RuneError && !unicode.IsPrint(r) }))
	})
}
