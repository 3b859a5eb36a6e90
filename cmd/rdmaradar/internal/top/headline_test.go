package top

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// The line has what the log record of a verdict has.
func TestSentenceHasAllOfAVerdict(t *testing.T) {
	i := radar.Incident{
		Subject: "QP 0x18f2 on mlx5_3", Happened: "380 µs, once", Cause: "packet_loss", Title: "packets lost", Confidence: "possible",
		For: []string{"2 were lost"}, Against: []string{"no time-out", "no gap"}, Missing: []string{"when the posts returned"}, Remedy: "Look at the cable.",
	}
	assert.Equal(t, "QP 0x18f2 on mlx5_3: 380 µs, once, since 00:00:00. Cause: packets lost (possible). "+
		"For: 2 were lost. Against: no time-out; no gap. Look at the cable.", sentence(&i, time.UTC))
	unknown := radar.Incident{
		Subject: "QP 0x18f2", Happened: "380 µs, once", Cause: causeUnknown, Title: "unknown", Confidence: "none", Missing: []string{"when the posts returned"},
	}
	assert.Equal(t, "QP 0x18f2: 380 µs, once, since 00:00:00. Cause: unknown. What would tell: when the posts returned.", sentence(&unknown, time.UTC))
}
