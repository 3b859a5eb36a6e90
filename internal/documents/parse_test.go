package documents

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParse(t *testing.T) {
	got := parse([]byte("# A `b_c` & d\n\n[one](x.md#y), ![two](z.png) and `make it`.\n\n## Same\n\n## Same\n\n    indented\n\n```sh\nfenced # no heading\n```\n\n" +
		"| a | b |\n| --- | --- |\n| [three](v.md) | `w` |\n"))
	assert.Equal(t, []string{"x.md#y", "z.png", "v.md"}, got.links)
	assert.Equal(t, map[string]bool{"a-b_c--d": true, "same": true, "same-1": true}, got.anchors)
	assert.Equal(t, []string{"b_c", "make it", "indented\n", "fenced # no heading\n", "w"}, got.code)
}

func TestMade(t *testing.T) {
	for code, want := range map[string][]string{
		"make demo":                              {"demo"},
		"LAB_KERNELS=6.1 make lab\ncd x && make": {"lab"},
		"make":                                   nil, "make V=1": nil, "cmake build": nil,
	} {
		assert.Equal(t, want, made(code), code)
	}
}
