package tracer

import (
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestPeersHaveNumbers(t *testing.T) {
	p := &peers{}
	ethernet := verbs.Path{RemoteGID: verbs.GID{15: 1}}
	infiniband := verbs.Path{RemoteLID: 7}
	for _, c := range []struct {
		name string
		path verbs.Path
		want uint32
	}{
		{"not known", verbs.Path{}, 0},
		{"the first", ethernet, 1},
		{"another", infiniband, 2},
		{"the first again", ethernet, 1},
		{"the first, with another timeout", verbs.Path{RemoteGID: ethernet.RemoteGID, AckTimeout: 1}, 1},
	} {
		if got := p.number(&c.path); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	for lid := range uint16(mostPeers - 2) {
		p.number(&verbs.Path{RemoteLID: 100 + lid})
	}
	if got := p.number(&infiniband); got != 2 {
		t.Errorf("a peer has the number %d now, it had 2", got)
	}
	if got := p.number(&verbs.Path{RemoteLID: 60000}); got != mostPeers+1 || len(p.numbers) != 1 {
		t.Errorf("one more peer has the number %d, %d are remembered", got, len(p.numbers))
	}
	if got := p.number(&infiniband); got != mostPeers+2 {
		t.Errorf("a peer that was forgotten has the number %d, which may be another one's", got)
	}
}
