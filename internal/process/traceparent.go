package process

import "encoding/hex"

// TraceContext is a parsed W3C trace context. The zero value means none.
type TraceContext struct {
	TraceID [16]byte
	SpanID  [8]byte
	// Flags are the trace flags; bit 0 is "sampled".
	Flags byte
}

// IsValid reports whether there is a trace context.
func (t TraceContext) IsValid() bool {
	return t.TraceID != [16]byte{} && t.SpanID != [8]byte{}
}

// traceparentLength is that of version 00: version, trace id, span id and
// flags in hexadecimal, separated by dashes.
const traceparentLength = 2 + 1 + 32 + 1 + 16 + 1 + 2

// parseTraceparent parses a traceparent as https://www.w3.org/TR/trace-context
// lays down, later versions included, which may append fields. What is
// malformed gives the zero value.
func parseTraceparent(text string) TraceContext {
	if len(text) < traceparentLength || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return TraceContext{}
	}
	version, rest := text[:2], text[traceparentLength:]
	if version == "00" && rest != "" || rest != "" && rest[0] != '-' {
		return TraceContext{}
	}
	var versionByte, flags [1]byte
	var parsed TraceContext
	ok := decodeHex(versionByte[:], version) && versionByte[0] != 0xff &&
		decodeHex(parsed.TraceID[:], text[3:35]) &&
		decodeHex(parsed.SpanID[:], text[36:52]) &&
		decodeHex(flags[:], text[53:55])
	if !ok || !parsed.IsValid() {
		return TraceContext{}
	}
	parsed.Flags = flags[0]
	return parsed
}

// decodeHex accepts lower-case digits only, as the specification does.
func decodeHex(into []byte, text string) bool {
	if !isHex(text) {
		return false
	}
	_, err := hex.Decode(into, []byte(text))
	return err == nil
}

func isHex(text string) bool {
	for i := range len(text) {
		digit := text[i]
		if (digit < '0' || digit > '9') && (digit < 'a' || digit > 'f') {
			return false
		}
	}
	return true
}
