package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// statV2 is cpu.stat of Linux 6.12, statV1 that of cpu,cpuacct.
	statV2 = "usage_usec 912345\nuser_usec 800000\nsystem_usec 112345\nnice_usec 0\ncore_sched.force_idle_usec 0\n" +
		"nr_periods 50\nnr_throttled 12\nthrottled_usec 345678\nnr_bursts 0\nburst_usec 0\n"
	statV1 = "nr_periods 50\nnr_throttled 7\nthrottled_time 123456789\n"
	// rootV2 has no quota.
	rootV2 = "usage_usec 912345\nuser_usec 800000\nsystem_usec 112345\n"
)

// groupTree is a proc root with process 7 in the groups, and where these are mounted.
func groupTree(t *testing.T, cgroup string, stats map[string]string) (reader *Reader, groups string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	write("proc/7/cgroup", cgroup)
	write("secret/cpu.stat", statV2)
	write("fs/cgroup/keep", "")
	for name, text := range stats {
		write(filepath.Join("fs/cgroup", name, "cpu.stat"), text)
	}
	return NewReader(filepath.Join(dir, "proc")), filepath.Join(dir, "fs/cgroup")
}

func TestThrottling(t *testing.T) {
	v2 := Throttling{Count: 12, Time: 345678 * time.Microsecond}
	v1 := Throttling{Count: 7, Time: 123456789}
	for name, test := range map[string]struct {
		cgroup string
		stats  map[string]string
		want   Throttling
	}{
		"v2": {"0::/job.slice/rank\n", map[string]string{".": rootV2, "job.slice": rootV2, "job.slice/rank": statV2}, v2},
		"v2, the quota of an ancestor": {
			"0::/pod/container\n", map[string]string{".": rootV2, "pod": statV2, "pod/container": rootV2}, v2,
		},
		"v2, both": {
			"0::/pod/container\n", map[string]string{"pod": statV2, "pod/container": statV2},
			Throttling{Count: 24, Time: 2 * v2.Time},
		},
		"v2, no quota":    {"0::/a\n", map[string]string{".": rootV2, "a": rootV2}, Throttling{}},
		"v2, the root":    {"0::/\n", map[string]string{".": rootV2}, Throttling{}},
		"v1":              {"4:memory:/x\n3:cpu,cpuacct:/job/rank\n0::/other\n", map[string]string{"cpu,cpuacct/job": statV1, "other": statV2}, v1},
		"v1, cpu alone":   {"3:cpu:/job\n", map[string]string{"cpu/job": statV1}, v1},
		"v1, other order": {"3:cpuacct,cpu:/job\n", map[string]string{"cpu/job": statV1}, v1},
		"v1 beside a unified hierarchy": {
			"1:name=systemd:/x\n3:cpu,cpuacct:/\n0::/job\n", map[string]string{"cpu,cpuacct": statV1, "job": statV2}, v1,
		},
		"beyond what a duration holds": {
			"0::/a\n", map[string]string{"a": "nr_throttled 1\nthrottled_usec 18446744073709551615\n"},
			Throttling{Count: 1, Time: time.Duration(9223372036854775) * time.Microsecond},
		},
	} {
		reader, groups := groupTree(t, test.cgroup, test.stats)
		got, err := reader.Throttling(groups, 7)
		require.NoError(t, err, name)
		assert.Equal(t, test.want, got, name)
	}
}

func TestThrottlingRefused(t *testing.T) {
	stats := map[string]string{"a": statV2}
	for name, test := range map[string]struct {
		cgroup string
		stats  map[string]string
		says   string
	}{
		"above the root that is mounted": {"0::/../a\n", stats, "not below the root"},
		"out of it":                      {"0::/../../secret\n", stats, "not below the root"},
		"relative":                       {"0::a\n", stats, "not below the root"},
		"controllers that are a path":    {"3:cpu,../../secret:/\n", stats, "not names of controllers"},
		"of no group":                    {"", stats, "no control group"},
		"without controllers":            {"3:memory:/a\n", stats, "no control group"},
		"not mounted":                    {"0::/b\n", stats, "no cpu.stat"},
		"too deep":                       {"0::" + strings.Repeat("/a", 65) + "\n", stats, "deep"},
		"not a number":                   {"0::/a\n", map[string]string{"a": "nr_throttled many\n"}, "not a number"},
		"negative":                       {"0::/a\n", map[string]string{"a": "throttled_usec -1\n"}, "not a number"},
		"too long":                       {strings.Repeat("0::/a\n", cgroupLimit), stats, "bytes"},
	} {
		reader, groups := groupTree(t, test.cgroup, test.stats)
		got, err := reader.Throttling(groups, 7)
		assert.ErrorContains(t, err, test.says, name)
		assert.Zero(t, got, name)
	}
}

// A link in the tree leads nowhere else.
func TestThrottlingFollowsNoLinkOut(t *testing.T) {
	reader, groups := groupTree(t, "0::/a\n", nil)
	require.NoError(t, os.Symlink("../../secret", filepath.Join(groups, "a")))
	_, err := reader.Throttling(groups, 7)
	require.Error(t, err)
	assert.NotErrorIs(t, err, fs.ErrNotExist)
}

func TestThrottlingOfNobody(t *testing.T) {
	reader, groups := groupTree(t, "0::/\n", nil)
	_, err := reader.Throttling(groups, 8)
	assert.ErrorIs(t, err, ErrGone)
}

func FuzzParseCPUGroup(f *testing.F) {
	f.Add("3:cpu,cpuacct:/job\n0::/x\n")
	f.Add("0::/../x\n")
	f.Fuzz(func(t *testing.T, text string) {
		group, err := parseCPUGroup(text)
		if err != nil {
			return
		}
		for _, mount := range group.mounts {
			require.True(t, filepath.IsLocal(filepath.Join(mount, group.path, "cpu.stat")), "%q", group)
		}
	})
}

func FuzzParseCPUStat(f *testing.F) {
	f.Add(statV1)
	f.Add(statV2)
	f.Fuzz(func(t *testing.T, text string) {
		got, _ := parseCPUStat(text)
		require.GreaterOrEqual(t, got.Time, time.Duration(0))
	})
}
