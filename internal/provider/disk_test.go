package provider

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// reports collects what a cache has to say.
type reports struct{ said []string }

func (r *reports) add(err error) { r.said = append(r.said, err.Error()) }

func newCache(t testing.TB, dir string) (*Cache, *reports) {
	t.Helper()
	r := &reports{}
	c, err := OpenCache(dir, r.add)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c, r
}

// cachedName is the name of a file of a cache.
func cachedName(n int) string { return fmt.Sprintf("%064x.analysis.json", n) }

func TestCacheKeepsFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "us")
	c, said := newCache(t, dir)
	assert.Nil(t, c.read(cachedName(1)))
	c.write(cachedName(1), []byte("one"))
	c.write(cachedName(1), []byte("two"))
	assert.Equal(t, "two", string(c.read(cachedName(1))))
	again, _ := newCache(t, dir)
	assert.Equal(t, "two", string(again.read(cachedName(1))))
	var s unix.Stat_t
	require.NoError(t, unix.Stat(filepath.Join(dir, cachedName(1)), &s))
	assert.EqualValues(t, 0o600, s.Mode&0o7777)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing temporary is left")
	assert.Empty(t, said.said)
}

func TestCacheDirectoryThatOthersCanChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	tests := map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string
	}{
		"writable by all":     {func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, 0o777)) }, "chmod go-w"},
		"writable, sticky":    {func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky)) }, "chmod go-w"},
		"writable by a group": {func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, 0o770)) }, "chmod go-w"},
		"another user's": {func(t *testing.T, dir string) {
			needRoot(t)
			require.NoError(t, os.Chown(dir, 65534, 65534))
		}, "belongs to user 65534"},
		"no directory": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(dir))
			require.NoError(t, os.Symlink(file, dir))
		}, "not a directory"},
		"a dead link": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(dir))
			require.NoError(t, os.Symlink(filepath.Join(filepath.Dir(dir), "nowhere"), dir))
		}, "cache directory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			require.NoError(t, os.Mkdir(dir, 0o700))
			test.prepare(t, dir)
			_, err := OpenCache(dir, func(error) {})
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, dir)
		})
	}
	t.Run("a link to a directory of ours", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "link")
		require.NoError(t, os.Symlink(t.TempDir(), dir))
		newCache(t, dir)
	})
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a file cannot be given to another user without it")
	}
}

// TestCacheFileThatOthersCanChange: such a file is not read, and the next
// result takes its place.
func TestCacheFileThatOthersCanChange(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("outside"), 0o600))
	tests := map[string]struct {
		prepare func(t *testing.T, path string)
		want    string
	}{
		"writable by all": {func(t *testing.T, path string) { require.NoError(t, os.Chmod(path, 0o666)) }, "chmod go-w"},
		"another user's": {func(t *testing.T, path string) {
			needRoot(t)
			require.NoError(t, os.Chown(path, 65534, 65534))
		}, "belongs to user 65534"},
		"a link": {func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Symlink(outside, path))
		}, "too many levels of symbolic links"},
		"a file of two names": {func(t *testing.T, path string) {
			require.NoError(t, os.Link(path, filepath.Join(filepath.Dir(path), "other")))
		}, "2 links"},
		"a pipe that nobody writes to": {func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, unix.Mkfifo(path, 0o600))
		}, "not a regular file"},
		"too large": {func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte(" "), maxCachedBytes+1), 0o600))
		}, "larger than 64 KiB"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, said := newCache(t, t.TempDir())
			c.write(cachedName(1), []byte("content"))
			path := filepath.Join(c.path, cachedName(1))
			test.prepare(t, path)
			assert.Nil(t, c.read(cachedName(1)))
			require.Len(t, said.said, 1)
			assert.Contains(t, said.said[0], "ignoring "+path)
			assert.Contains(t, said.said[0], test.want)
			c.write(cachedName(1), []byte("new"))
			assert.Equal(t, "new", string(c.read(cachedName(1))))
			untouched, err := os.ReadFile(outside)
			require.NoError(t, err)
			assert.Equal(t, "outside", string(untouched))
		})
	}
}

// TestCacheReportsFailuresOnce: a full disk is said once, until it is not full.
func TestCacheReportsFailuresOnce(t *testing.T) {
	c, said := newCache(t, t.TempDir())
	tooLarge := make([]byte, maxCachedBytes+1)
	c.write(cachedName(1), tooLarge)
	c.write(cachedName(2), tooLarge)
	require.Len(t, said.said, 1)
	assert.Contains(t, said.said[0], cachedName(1))
	c.write(cachedName(2), nil)
	c.write(cachedName(1), tooLarge)
	assert.Len(t, said.said, 2)
}

// TestCacheIsPruned: the files written the longest time ago go; what is not
// the cache's is left alone.
func TestCacheIsPruned(t *testing.T) {
	c, said := newCache(t, t.TempDir())
	put := func(name string, age time.Duration) {
		path := filepath.Join(c.path, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	for n := range maxCachedFiles + 9 {
		put(cachedName(n), time.Duration(n+1)*time.Minute)
	}
	put("README", 1000*time.Hour)
	put(cachedName(1)+".123.new", 2*abandonedAfter)
	put(cachedName(2)+".123.new", abandonedAfter/2)
	c.write(cachedName(9999), nil)
	assert.Empty(t, said.said)
	var kept, others []string
	entries, err := os.ReadDir(c.path)
	require.NoError(t, err)
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".json") {
			kept = append(kept, entry.Name())
		} else {
			others = append(others, entry.Name())
		}
	}
	assert.Len(t, kept, maxCachedFiles)
	assert.Contains(t, kept, cachedName(9999))
	assert.Contains(t, kept, cachedName(maxCachedFiles-2))
	assert.NotContains(t, kept, cachedName(maxCachedFiles-1))
	assert.ElementsMatch(t, []string{"README", cachedName(2) + ".123.new"}, others)
}

func TestNoCache(t *testing.T) {
	var c *Cache
	require.NoError(t, c.Close())
	assert.Nil(t, c.load(nil, analysisKey{}))
	c.save(analysisKey{}, &Library{})
}
