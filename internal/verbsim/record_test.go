package verbsim

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample is a record whose every field has a value of its own.
func sample() Record {
	return Record{
		WRID: 0xfedcba9876543210, PostBefore: 1, PostAfter: 2, PollBefore: 3, PollAfter: 4,
		Context: 0x7f0000000140, Bytes: 1 << 40, QPNumber: 0xa10400, Requests: 100,
		Operation: 30, Status: 5, Flags: RecordRecv | RecordOverlap, Due: 9,
	}
}

func encode(t testing.TB, r Record) []byte {
	var buf bytes.Buffer
	require.NoError(t, binary.Write(&buf, binary.LittleEndian, r))
	require.Equal(t, RecordSize, buf.Len())
	return buf.Bytes()
}

func TestReadRecords(t *testing.T) {
	one := encode(t, sample())
	for name, test := range map[string]struct {
		in   []byte
		want int
		err  string
	}{
		"empty":     {nil, 0, ""},
		"one":       {one, 1, ""},
		"three":     {bytes.Repeat(one, 3), 3, ""},
		"cut short": {bytes.Repeat(one, 2)[:RecordSize+79], 0, "record 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadRecords(bytes.NewReader(test.in))
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Len(t, got, test.want)
			for _, r := range got {
				assert.Equal(t, sample(), r)
				assert.True(t, r.Recv() && r.Overlap())
			}
		})
	}
}

func FuzzReadRecords(f *testing.F) {
	f.Add([]byte{})
	f.Add(encode(f, sample()))
	f.Add(encode(f, sample())[:79])
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ReadRecords(bytes.NewReader(b))
		if len(b)%RecordSize != 0 {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Len(t, got, len(b)/RecordSize)
		for i, r := range got {
			assert.Equal(t, b[i*RecordSize:(i+1)*RecordSize], encode(t, r))
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"scenario":"nccl","qps":[{"counts":{"posted":1}}],"slow":[{"wr_id":18446744073709551615}]}`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, s string) {
		truth, err := decode(strings.NewReader(s))
		if err != nil {
			assert.Empty(t, truth.Queues)
			return
		}
		_ = truth.Counts.Unexplained()
	})
}

func TestReadMissing(t *testing.T) {
	_, err := Read(t.TempDir() + "/none.json")
	require.ErrorContains(t, err, "none.json")
	_, err = ReadRecordsFile(t.TempDir() + "/none.bin")
	require.ErrorContains(t, err, "none.bin")
}
