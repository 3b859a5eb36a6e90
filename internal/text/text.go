// Package text makes foreign bytes fit to be shown: names of threads, programs,
// devices and files come from traced processes, whose owners choose them. It also
// puts durations as people say them.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns valid UTF-8 without control, format or line-separating characters,
// which could forge log lines or steer a terminal, without space around, and of at
// most limit bytes. Each character or byte that may not stay is replaced by U+FFFD.
func Clean(foreign string, limit int) string {
	var out strings.Builder
	for _, char := range strings.TrimSpace(foreign) {
		if !unicode.IsPrint(char) {
			char = utf8.RuneError
		}
		if out.Len()+utf8.RuneLen(char) > limit {
			break
		}
		out.WriteRune(char)
	}
	return out.String()
}
