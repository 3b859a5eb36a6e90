package fabric

import (
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

// recorded returns a Reader of the tree with that name.
func recorded(t *testing.T, name string) *Reader {
	t.Helper()
	return NewReader(fabrictest.Tree(t, name))
}

func laidOut(t *testing.T, recording string) *Reader {
	t.Helper()
	return NewReader(fabrictest.LayOut(t, recording))
}
