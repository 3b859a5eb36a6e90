package provider

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// judgedLibrary is a library with sites, and where its poll_cq is.
func judgedLibrary(t *testing.T) (*Library, uint64) {
	t.Helper()
	library, _ := storedOf(t, testSiteProvider(t))
	return library, library.Find(PollCQ)[0].Offset
}

func TestVerdicts(t *testing.T) {
	library, poll := judgedLibrary(t)
	dir := t.TempDir()
	open := func() *Verdicts {
		c, said := newCache(t, dir)
		t.Cleanup(func() { assert.Empty(t, said.said) })
		return NewVerdicts(c)
	}
	v := open()
	assert.Equal(t, Unverified, v.Of(library, poll))
	v.Record(library, poll, Verified)
	assert.Equal(t, Verified, v.Of(library, poll))
	assert.Equal(t, Verified, open().Of(library, poll), "after a restart")

	v.Record(library, poll, Wrong)
	assert.Equal(t, Wrong, open().Of(library, poll))
	v.Record(library, poll, Unverified)
	assert.Equal(t, Unverified, v.Of(library, poll))
	assert.Equal(t, Unverified, open().Of(library, poll))

	send := library.Find(PostSend)[0].Offset
	v.Record(library, send, Verified)
	v.Record(library, poll, Verified)
	again := open()
	assert.Equal(t, Verified, again.Of(library, send), "one of several")
	assert.Equal(t, Verified, again.Of(library, poll), "one of several")

	v.Record(library, 0x1234, Verified)
	assert.Equal(t, Unverified, v.Of(library, 0x1234), "no function with sites")
}

// TestRepeatedVerdict: the same verdict again is written, and holds longer, after
// an hour; another one at once.
func TestRepeatedVerdict(t *testing.T) {
	library, poll := judgedLibrary(t)
	c, _ := newCache(t, t.TempDir())
	v := NewVerdicts(c)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		after    time.Duration
		verdict  Verdict
		recorded time.Duration
	}{
		{0, Verified, 0},
		{repeatedAfter - 1, Verified, 0},
		{repeatedAfter, Verified, repeatedAfter},
		{repeatedAfter + 1, Wrong, repeatedAfter + 1},
	} {
		v.now = func() time.Time { return at.Add(step.after) }
		v.Record(library, poll, step.verdict)
		stored, err := decodeVerdicts(c.read(verdictsFile(library.Digest)), library.Digest)
		require.NoError(t, err)
		require.Len(t, stored, 1)
		assert.Equal(t, step.verdict, stored[0].Verdict, step.after)
		assert.Equal(t, at.Add(step.recorded), stored[0].At, step.after)
	}
}

// TestVerdictIsOnSites: with other tables the same code may have other sites,
// of which nothing is known.
func TestVerdictIsOnSites(t *testing.T) {
	library, poll := judgedLibrary(t)
	v := NewVerdicts(nil)
	v.Record(library, poll, Verified)
	other := *library
	other.Sites = append([]SiteSet(nil), library.Sites...)
	for i := range other.Sites {
		other.Sites[i].Sites = nil
	}
	assert.Equal(t, Unverified, v.Of(&other, poll))
	copied := *library
	assert.Equal(t, Verified, v.Of(&copied, poll), "a copy of the library")
	copied.Digest[0]++
	assert.Equal(t, Unverified, v.Of(&copied, poll))
}

func TestVerdictsAge(t *testing.T) {
	library, poll := judgedLibrary(t)
	for _, test := range []struct {
		verdict  Verdict
		after    time.Duration
		expected Verdict
	}{
		{Verified, verifiedHolds - time.Second, Verified},
		{Verified, verifiedHolds, Unverified},
		{Wrong, wrongHolds - time.Second, Wrong},
		{Wrong, wrongHolds, Unverified},
		{Verified, -time.Second, Unverified},
	} {
		c, _ := newCache(t, t.TempDir())
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		v := NewVerdicts(c)
		v.now = func() time.Time { return at }
		v.Record(library, poll, test.verdict)
		for _, later := range []*Verdicts{v, NewVerdicts(c)} {
			later.now = func() time.Time { return at.Add(test.after) }
			assert.Equal(t, test.expected, later.Of(library, poll), "%s after %v", test.verdict, test.after)
		}
	}
}

// TestForgedVerdicts: a file that is not what it should be says nothing, is
// told of, and gives way to the next verdict.
func TestForgedVerdicts(t *testing.T) {
	library, poll := judgedLibrary(t)
	tests := map[string]struct {
		change func(content string) string
		quiet  bool
	}{
		"cut off":         {change: func(s string) string { return s[:len(s)/2] }},
		"nothing":         {change: func(string) string { return "" }},
		"another code":    {change: func(s string) string { return strings.Replace(s, checksum(library.Digest).String()[:8], "01234567", 1) }},
		"no verdict":      {change: func(s string) string { return strings.Replace(s, `"verified"`, `"perfect"`, 1) }},
		"another member":  {change: func(s string) string { return strings.Replace(s, `"Function"`, `"Symbol"`, 1) }},
		"too many":        {change: func(s string) string { return manyVerdicts(t, s) }},
		"another version": {change: func(s string) string { return strings.Replace(s, `"Version": `, `"Version": 1`, 1) }, quiet: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, said := newCache(t, t.TempDir())
			NewVerdicts(c).Record(library, poll, Verified)
			path := filepath.Join(c.path, verdictsFile(library.Digest))
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			forged := test.change(string(content))
			require.NotEqual(t, string(content), forged)
			require.NoError(t, os.WriteFile(path, []byte(forged), 0o600))
			v := NewVerdicts(c)
			assert.Equal(t, Unverified, v.Of(library, poll))
			assert.Equal(t, test.quiet, len(said.said) == 0, "%q", said.said)
			v.Record(library, poll, Wrong)
			assert.Equal(t, Wrong, NewVerdicts(c).Of(library, poll))
		})
	}
}

// manyVerdicts repeats the verdict of a file.
func manyVerdicts(t *testing.T, content string) string {
	t.Helper()
	from, to := strings.Index(content, "[")+1, strings.LastIndex(content, "]")
	one := content[from:to]
	return content[:from] + strings.Repeat(one+",", maxLibraryVerdicts) + one + content[to:]
}

func TestVerdictsTogether(t *testing.T) {
	library, poll := judgedLibrary(t)
	c, said := newCache(t, t.TempDir())
	v := NewVerdicts(c)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			v.Record(library, poll, Verdict(1+i%2))
			v.Of(library, poll)
		})
	}
	all.Wait()
	assert.NotEqual(t, Unverified, NewVerdicts(c).Of(library, poll))
	assert.Empty(t, said.said)
}
