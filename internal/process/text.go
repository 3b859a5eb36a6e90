package process

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// textLimit is the longest text in Facts, in bytes.
const textLimit = 255

// clean makes foreign bytes fit to be shown and stored: valid UTF-8, no
// control, format or line-separating characters (they could forge log lines
// or terminal output), no space around, at most textLimit bytes.
func clean(text string) string {
	var out strings.Builder
	for _, char := range strings.TrimSpace(text) {
		if !unicode.IsPrint(char) {
			char = utf8.RuneError
		}
		if out.Len()+utf8.RuneLen(char) > textLimit {
			break
		}
		out.WriteRune(char)
	}
	return out.String()
}
