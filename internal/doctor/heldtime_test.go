package doctor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The time is a part of the 2 s within which --node-health ends.
func TestTheLookForAHeldThreadIsShort(t *testing.T) {
	assert.Equal(t, 300*time.Millisecond, (heldLooks-1)*heldPause)
}
