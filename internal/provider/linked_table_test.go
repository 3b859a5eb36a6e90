package provider

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What may be poll_cq is in a table of its own where nothing but functions and 0 is
// around it, and nothing where the functions that post would be.
func TestIsAlone(t *testing.T) {
	const (
		function = testCode
		text     = 0x6c6c6f705f716300 // of a string beside the table
		inside   = testCode + 1
		words    = 128
		at       = 64
	)
	for name, tc := range map[string]struct {
		around map[int]uint64
		want   bool
	}{
		"nothing around it":                          {nil, true},
		"functions before it":                        {map[int]uint64{-1: function, -32: function}, true},
		"functions after those that post":            {map[int]uint64{5: function, 16: function}, true},
		"post_recv":                                  {map[int]uint64{1: function}, false},
		"post_send":                                  {map[int]uint64{2: function}, false},
		"post_srq_ops":                               {map[int]uint64{3: function}, false},
		"post_srq_recv":                              {map[int]uint64{4: function}, false},
		"text just before it":                        {map[int]uint64{-1: text}, false},
		"text in the first member of the table":      {map[int]uint64{-32: text}, false},
		"text before the table":                      {map[int]uint64{-33: text}, true},
		"text in the place of a function that posts": {map[int]uint64{4: text}, false},
		"text just after those that post":            {map[int]uint64{5: text}, false},
		"text at the end of the smallest table":      {map[int]uint64{16: text}, false},
		"text behind the smallest table":             {map[int]uint64{17: text}, true},
		"the middle of a function":                   {map[int]uint64{-2: inside}, false},
		"an address of data":                         {map[int]uint64{6: testData}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := &testELF{data: make([]byte, words*member)}
			require.EqualValues(t, function, e.add(0x31, 0xc0, 0xc3)) // xor eax, eax; ret
			for i, word := range tc.around {
				binary.LittleEndian.PutUint64(e.data[(at+i)*member:], word)
			}
			a := analysisOf(t, e.build())
			assert.Equal(t, tc.want, a.isAlone(testData+at*member))
		})
	}
}

// A relocated pointer counts as what it will be, and not as the word in the file.
func TestIsAloneWithRelocations(t *testing.T) {
	e := &testELF{data: make([]byte, 128*member)}
	function := e.add(0x31, 0xc0, 0xc3) // xor eax, eax; ret
	const where = testData + 64*member
	e.relative(where+2*member, function)
	assert.False(t, analysisOf(t, e.build()).isAlone(where), "a function that posts is beside it")
}

// analysisOf prepares the analysis of a composed file.
func analysisOf(t *testing.T, file []byte) *analysis {
	t.Helper()
	img, err := openImage(bytes.NewReader(file))
	require.NoError(t, err)
	require.NoError(t, img.load())
	d, err := img.readDynamic()
	require.NoError(t, err)
	a := &analysis{img: img, dynamic: d, kept: 3}
	require.NoError(t, a.prepare())
	return a
}
