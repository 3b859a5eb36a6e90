package process

import (
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	tail := strings.TrimPrefix(statLine(4711, 99), "7 (name)")
	for _, comm := range []string{"name", "", ")", "a) S 1 2 3", "(", "line\nbreak", "\xff\xfe"} {
		got, err := parseStat([]byte("7 (" + comm + ")" + tail))
		require.NoError(t, err, "%q", comm)
		assert.Equal(t, stat{comm: comm, state: 'S', startTicks: 4711, envStart: 99}, got)
	}
	for _, text := range []string{
		"", "7 name S", ")(", "7 (name", "7 (name) S 1 2 3",
		strings.Replace(statLine(4711, 99), "4711", "-1", 1),
		strings.Replace(statLine(4711, 99), "4711", "18446744073709551615", 1),
	} {
		_, err := parseStat([]byte(text))
		assert.ErrorContains(t, err, "parse stat", "%q", text)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(statLine(4711, 99)))
	f.Add([]byte("7 (a) b) S 1 1"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, text []byte) {
		parsed, err := parseStat(text)
		if err != nil {
			require.Less(t, len(err.Error()), 200)
			return
		}
		boot := time.Unix(0, 0)
		require.False(t, parsed.startTime(boot).Before(boot))
		require.Contains(t, string(text), "("+parsed.comm+")")
	})
}

func TestParseBootTime(t *testing.T) {
	long := "intr " + strings.Repeat("0 ", 100_000) + "\n"
	for _, text := range []string{"btime 1767225600\n", "cpu 1\n" + long + "btime 1767225600\nprocs 1\n", long + "btime 1767225600"} {
		got, err := parseBootTime(iotest.HalfReader(strings.NewReader(text)))
		require.NoError(t, err)
		assert.Equal(t, time.Unix(1767225600, 0), got)
	}
	for _, text := range []string{"", "cpu 1\n", "btime\n", "btime x\n", "btime -1\n", "xbtime 1\n", "btime 99999999999999\n"} {
		_, err := parseBootTime(strings.NewReader(text))
		assert.ErrorContains(t, err, "btime", "%q", text)
	}
}

func FuzzParseBootTime(f *testing.F) {
	f.Add("cpu 1\nbtime 1767225600\n")
	f.Add("btime 99999999999\n")
	f.Fuzz(func(t *testing.T, text string) {
		at, err := parseBootTime(strings.NewReader(text))
		if err == nil {
			require.Contains(t, text, "btime ")
			require.GreaterOrEqual(t, at.Unix(), int64(0))
		}
	})
}

func TestBootTimeIsReadOnce(t *testing.T) {
	reader := NewReader("testdata/podman-v2")
	first, err := reader.boot.of(reader.root)
	require.NoError(t, err)
	again, err := reader.boot.of("/nonexistent")
	require.NoError(t, err)
	assert.Equal(t, first, again)
}

func TestExecutableName(t *testing.T) {
	for target, want := range map[string]string{
		"/usr/bin/python3.11":              "python3.11",
		"/usr/bin/python3.11 (deleted)":    "python3.11",
		"/memfd:runc_cloned:/proc/self/ex": "ex",
		"/":                                "",
		"":                                 "",
	} {
		assert.Equal(t, want, executableName(target), target)
	}
}

const validTraceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestParseTraceparent(t *testing.T) {
	valid := parseTraceparent(validTraceparent)
	require.True(t, valid.IsValid())
	assert.Equal(t, byte(1), valid.Flags)
	assert.Equal(t, byte(0x0a), valid.TraceID[0])
	assert.Equal(t, byte(0x31), valid.SpanID[7])
	for _, later := range []string{"cc" + validTraceparent[2:], "cc" + validTraceparent[2:] + "-what-comes", "01" + validTraceparent[2:] + "-"} {
		assert.Equal(t, valid, parseTraceparent(later), later)
	}
	for _, text := range []string{
		"", "00", validTraceparent[:54], validTraceparent + "-x", validTraceparent + " ",
		"ff" + validTraceparent[2:], "cc" + validTraceparent[2:] + ".x",
		strings.ToUpper(validTraceparent),
		strings.Replace(validTraceparent, "-", "_", 1),
		strings.Replace(validTraceparent, "0af7", "0ag7", 1),
		"00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
	} {
		assert.Equal(t, TraceContext{}, parseTraceparent(text), text)
	}
}

func FuzzParseTraceparent(f *testing.F) {
	f.Add(validTraceparent)
	f.Add("cc" + validTraceparent[2:] + "-x")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		parsed := parseTraceparent(text)
		require.Equal(t, parsed != TraceContext{}, parsed.IsValid())
	})
}

func TestServiceOf(t *testing.T) {
	for _, test := range []struct {
		service, attributes, name, namespace string
	}{
		{"", "", "", ""},
		{"one", "service.name=two,service.namespace=ns", "one", "ns"},
		{"", "service.name=two", "two", ""},
		{" \x07", "service.name=two", "\uFFFD", ""},
		{"", " service.name = spaced , other=x ,", "spaced", ""},
		{"", "service%2Ename=a%2Cb%3Dc", "a,b=c", ""},
		{"", "service.name=first,service.name=last", "last", ""},
		{"", "service.name=two,malformed", "", ""},
		{"", "service.name=two,bad=%zz", "", ""},
		{"", "service.name=two,=x", "", ""},
		{"", "service.name=a%0Ab", "a\uFFFDb", ""},
	} {
		name, namespace := serviceOf(map[string]string{keyServiceName: test.service, keyResourceAttributes: test.attributes})
		assert.Equal(t, test.name, name, test)
		assert.Equal(t, test.namespace, namespace, test)
	}
}

func FuzzParseResourceAttributes(f *testing.F) {
	for _, seed := range []string{"", "service.name=a,service.namespace=b", "service.name=%41", "a=b=c,", "%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		for key, value := range parseResourceAttributes(list) {
			require.Contains(t, []string{"service.name", "service.namespace"}, key)
			require.LessOrEqual(t, len(value), len(list))
		}
	})
}
