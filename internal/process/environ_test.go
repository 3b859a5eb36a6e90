package process

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScanEnviron(t *testing.T) {
	long := strings.Repeat("x", valueLimit)
	for _, test := range []struct {
		name, environ string
		want          map[string]string
	}{
		{"empty", "", map[string]string{}},
		{"others", "PATH=/bin\x00TOKEN=" + secret + "\x00", map[string]string{}},
		{"allowed among others", "A=" + secret + "\x00RANK=1\x00B=" + secret + "\x00", map[string]string{"RANK": "1"}},
		{"first counts", "RANK=1\x00RANK=2\x00", map[string]string{"RANK": "1"}},
		{"first counts when empty", "RANK=\x00RANK=2\x00", map[string]string{"RANK": ""}},
		{"equals sign in value", "OTEL_RESOURCE_ATTRIBUTES=a=b=c\x00", map[string]string{keyResourceAttributes: "a=b=c"}},
		{"beginning of another key", "RANK_TOKEN=1\x00XRANK=1\x00 RANK=1\x00", map[string]string{}},
		{"no equals sign", "RANK\x00WORLD_SIZE=2\x00", map[string]string{"WORLD_SIZE": "2"}},
		{"secret that holds a key", "TOKEN=RANK=1\x00", map[string]string{}},
		{"empty strings", "\x00\x00RANK=1\x00\x00", map[string]string{"RANK": "1"}},
		{"empty key", "=RANK=1\x00", map[string]string{}},
		{"cut at the end", "RANK=1\x00WORLD_SIZE=2", map[string]string{"RANK": "1"}},
		{"longest value", "OTEL_SERVICE_NAME=" + long + "\x00", map[string]string{keyServiceName: long}},
		{"too long a value", "OTEL_SERVICE_NAME=" + long + "x\x00RANK=1\x00", map[string]string{"RANK": "1"}},
		{"too long a key", strings.Repeat("K", 100_000) + "=v\x00RANK=1\x00", map[string]string{"RANK": "1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := scanEnviron(strings.NewReader(test.environ))
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
			got, err = scanEnviron(iotest.OneByteReader(strings.NewReader(test.environ)))
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestEnvironIsBounded(t *testing.T) {
	got, err := scanEnviron(strings.NewReader("RANK=1\x00PAD=" + strings.Repeat("x", environLimit) + "\x00WORLD_SIZE=2\x00"))
	require.ErrorContains(t, err, "1048576 bytes")
	assert.Equal(t, map[string]string{"RANK": "1"}, got)
}

// keeping remembers the buffers it was given, as memory that outlives a read.
type keeping struct {
	text  *strings.Reader
	given [][]byte
}

func (k *keeping) Read(buffer []byte) (int, error) {
	k.given = append(k.given, buffer)
	return k.text.Read(buffer)
}

func TestEnvironIsWiped(t *testing.T) {
	reader := &keeping{text: strings.NewReader(secret + "=" + secret + "\x00RANK=1\x00TOKEN=" + secret)}
	scanned, err := scanEnviron(reader)
	require.NoError(t, err)
	require.Len(t, scanned, 1)
	for _, buffer := range reader.given {
		assert.NotContains(t, string(buffer), secret)
		assert.Empty(t, bytes.Trim(buffer, "\x00"))
	}
}

func TestAllowedKeysFitTheKeyBuffer(t *testing.T) {
	for key := range allowedKeys() {
		assert.LessOrEqual(t, len(key), keyLimit, key)
	}
}

func FuzzScanEnviron(f *testing.F) {
	for _, seed := range []string{"", "RANK=1\x00", "TOKEN=s\x00RANK=1", "=\x00=", "RANK=1\x00RANK=2\x00", "OTEL_SERVICE_NAME=\xff\x00"} {
		f.Add([]byte(seed), uint8(3))
	}
	allowed := allowedKeys()
	f.Fuzz(func(t *testing.T, environ []byte, pieces uint8) {
		values, err := scanEnviron(bytes.NewReader(environ))
		require.NoError(t, err)
		for key, value := range values {
			require.Contains(t, allowed, key)
			require.LessOrEqual(t, len(value), valueLimit)
			require.Contains(t, "\x00"+string(environ), "\x00"+key+"="+value+"\x00")
		}
		// Where the chunks are cut must not matter.
		scanner := newEnvironScanner()
		for rest := environ; len(rest) > 0; {
			n := min(len(rest), int(pieces)+1)
			scanner.feed(rest[:n])
			rest = rest[n:]
		}
		require.Equal(t, values, scanner.values)
	})
}

// The document names every variable that is read, and no other.
func TestVariablesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(text), "<!-- variables -->\n")
	require.True(t, ok)
	list, _, ok := strings.Cut(after, "<!-- /variables -->")
	require.True(t, ok)
	var named []string
	for _, part := range strings.Split(list, "`") {
		if part != "" && strings.ToUpper(part) == part && !strings.ContainsAny(part, " ,.\n") {
			named = append(named, part)
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(allowedKeys())), named)
}
