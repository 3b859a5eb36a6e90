package rdmareceiver

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/filter"

	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

func filters(strict, regex string) []filter.Config {
	return []filter.Config{{Strict: strict, Regex: regex}}
}

func TestLoadConfig(t *testing.T) {
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	full := createDefaultConfig().(*Config)
	full.Threshold = 20 * time.Millisecond
	full.CollectionInterval = time.Minute
	full.MaxExportedPerSecond = 50
	full.MaxSeries = 500
	full.MetricAttributes = []MetricAttribute{MetricAttributeRank, MetricAttributeQPNumber}
	full.MaxMapMiB = 64
	full.MaxThreadCPURatio = 0.02
	full.MaxAgentCPUCores = 0.5
	full.ProbeMode = ProbeModeWindows
	full.CQETimestamps = true
	full.Histogram = HistogramExplicit
	full.SlowLogs = true
	full.ParentFromTraceparent = true
	full.StageSpans = true
	full.Routes = true
	full.Processes = Filters{Include: filters("", "^python"), Exclude: filters("ib_write_bw", "")}
	full.Devices = Filters{Include: filters("", "^mlx5_[0-7]$")}
	full.Counters = Filters{Exclude: filters("mlx5_3", "")}
	full.ErrorMode = ErrorModePropagate
	full.RootPath = "/hostfs"
	full.CacheDirectory = "/var/cache/otelcol-rdma"
	full.Metrics.RdmaIo.Enabled = false
	full.Events.RdmaWqeStuck.Enabled = false

	for _, tc := range []struct {
		id     component.ID
		want   component.Config
		errors []string
	}{
		{id: component.NewID(metadata.Type), want: createDefaultConfig()},
		{id: component.NewIDWithName(metadata.Type, "full"), want: full},
		{id: component.NewIDWithName(metadata.Type, "wrong"), errors: []string{
			"routes is true and peer_addresses is false: routes name peers",
			"threshold is 50ns: set it to a value from 1µs to 1m0s",
			"collection_interval is 1ms: set it to a value from 1s to 10m0s",
			"max_exported_per_second is 0: set it to a value from 1 to 10000",
			"max_series is 5: set it to a value from 100 to 1000000",
			"max_map_mib is 1: set it to a value from 24 to 4096",
			"max_thread_cpu_ratio is 10: set it to a value from 0.001 to 1",
			"max_agent_cpu_cores is 0: set it to a value from 0.005 to 16",
			`probe_mode is "site": set it to one of ["auto" "windows"]`,
			`metric_attributes has "qp": use some of ["process.pid" "rdma.rank" "rdma.qp.number" "rdma.cq.handle"]`,
			`histogram is "classic": set it to one of ["exponential" "explicit"]`,
			`error_mode is "silent": set it to one of ["ignore" "propagate"]`,
			`root_path is "host": set it to the absolute path`,
			`cache_directory is "cache": set it to the absolute path`,
			"processes::include::0: must specify either strict or regex",
			"devices::exclude::0: error parsing regexp",
			"counters::include::0: must specify either strict or regex",
		}},
		{id: component.NewIDWithName(metadata.Type, "twice"), errors: []string{
			`metric_attributes has "rdma.rank" twice: remove one`,
		}},
	} {
		t.Run(tc.id.String(), func(t *testing.T) {
			sub, err := all.Sub(tc.id.String())
			require.NoError(t, err)
			cfg := createDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			err = confmap.Validate(cfg)
			for _, want := range tc.errors {
				require.ErrorContains(t, err, want)
			}
			if tc.errors == nil {
				require.NoError(t, err)
				assert.Equal(t, settingsOf(t, tc.want), settingsOf(t, cfg))
			}
		})
	}
}

// A duration without its unit or value is a slip that the error helps with.
func TestDurationsOutOfRange(t *testing.T) {
	for _, tc := range []struct {
		key   string
		value any
		want  string
	}{
		{"threshold", 50, "threshold is 50: set it to a value from 1µs to 1m0s; a number without a unit is nanoseconds: write 50us"},
		{"threshold", "0s", "threshold is 0s: set it to a value from 1µs to 1m0s; a key without a value is 0: remove it for the default"},
		{"threshold", 0, "threshold is 0s: set it to a value from 1µs to 1m0s; a key without a value is 0: remove it for the default"},
		{"threshold", "0.5us", "threshold is 500ns: set it to a value from 1µs to 1m0s"},
		{"threshold", 0.5, "threshold is 0.5: set it to a value from 1µs to 1m0s; a number without a unit is nanoseconds: write 0.5us"},
		{"threshold", -5, "threshold is -5: set it to a value from 1µs to 1m0s, with its unit"},
		{"threshold", 5000.5, "threshold is 5000.5: set it to a value from 1µs to 1m0s, with its unit"},
		{"threshold", math.NaN(), "threshold is NaN: set it to a value from 1µs to 1m0s, with its unit"},
		{"threshold", 1e30, "threshold is 1e+30: set it to a value from 1µs to 1m0s, with its unit"},
		{"threshold", uint64(math.MaxUint64), "threshold is 18446744073709551615: set it to a value from 1µs to 1m0s, with its unit"},
		{"collection_interval", 5000, "collection_interval is 5µs: set it to a value from 1s to 10m0s"},
		{"threshold", "-1us", "threshold is -1µs: set it to a value from 1µs to 1m0s"},
		{"threshold", "2m", "threshold is 2m0s: set it to a value from 1µs to 1m0s"},
		{"collection_interval", 10, "collection_interval is 10: set it to a value from 1s to 10m0s; a number without a unit is nanoseconds: write 10s"},
		{"collection_interval", 0, "collection_interval is 0s: set it to a value from 1s to 10m0s; a key without a value is 0: remove it for the default"},
	} {
		t.Run(fmt.Sprint(tc.key, " ", tc.value), func(t *testing.T) {
			assert.EqualError(t, loaded(tc.key, tc.value), tc.want)
		})
	}
}

// loaded is what a collector says of the value of a key.
func loaded(key string, value any) error {
	cfg := createDefaultConfig()
	if err := confmap.NewFromStringMap(map[string]any{key: value}).Unmarshal(cfg); err != nil {
		return err
	}
	return confmap.Validate(cfg)
}

// Of what is no whole number an int would be something else than what was written.
func TestNumbersAreThoseThatWereWritten(t *testing.T) {
	for key, bounds := range map[string]string{
		"max_exported_per_second": "1 to 10000", "max_series": "100 to 1000000", "max_map_mib": "24 to 4096",
	} {
		for written, value := range map[string]any{
			"1.5": 1.5, "1000.5": 1000.5, "NaN": math.NaN(), "+Inf": math.Inf(1), "-Inf": math.Inf(-1), "1e+30": 1e30, "-1e+30": -1e30,
			"18446744073709551615": uint64(math.MaxUint64),
		} {
			want := fmt.Sprintf("%s is %s: set it to a whole number from %s", key, written, bounds)
			assert.EqualError(t, loaded(key, value), want)
		}
		for _, value := range []any{1000, 1000.0, int64(1000), uint64(1000)} {
			assert.NoError(t, loaded(key, value), "%s %T", key, value)
		}
		assert.ErrorContains(t, loaded(key, -1), key+" is -1: set it to a value from "+bounds)
	}
	for key, bounds := range map[string]string{"max_thread_cpu_ratio": "0.001 to 1", "max_agent_cpu_cores": "0.005 to 16"} {
		for written, value := range map[string]any{"NaN": math.NaN(), "+Inf": math.Inf(1), "1e+30": 1e30, "-1": -1} {
			assert.EqualError(t, loaded(key, value), fmt.Sprintf("%s is %s: set it to a value from %s", key, written, bounds))
		}
		assert.NoError(t, loaded(key, 1))
	}
	assert.NoError(t, loaded("threshold", 50_000), "nanoseconds")
}

func TestUnknownKeyIsRejected(t *testing.T) {
	err := confmap.NewFromStringMap(map[string]any{"treshold": "1ms"}).Unmarshal(createDefaultConfig())
	require.ErrorContains(t, err, "treshold")
}

// settingsOf returns every key of a configuration with its value.
func settingsOf(t *testing.T, cfg component.Config) map[string]any {
	t.Helper()
	conf := confmap.New()
	require.NoError(t, conf.Marshal(cfg))
	return conf.ToStringMap()
}

func TestFilters(t *testing.T) {
	for _, tc := range []struct {
		name      string
		filters   Filters
		takes     []string
		takesNone []string
	}{
		{"include", Filters{Include: filters("", "^mlx5_")}, []string{"mlx5_0"}, []string{"rxe0", ""}},
		{"exclude", Filters{Exclude: filters("rxe0", "")}, []string{"mlx5_0", ""}, []string{"rxe0"}},
		{"exclude wins", Filters{Include: filters("", "^mlx5_"), Exclude: filters("mlx5_1", "")}, []string{"mlx5_0"}, []string{"mlx5_1", "rxe0"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			takes := tc.filters.matcher()
			for _, name := range tc.takes {
				assert.True(t, takes(name), name)
			}
			for _, name := range tc.takesNone {
				assert.False(t, takes(name), name)
			}
		})
	}
	assert.Nil(t, (&Filters{}).matcher(), "no filters take everything, and cost nothing")
}

// fenced returns the configuration of the receiver that a document prints after
// a heading.
func fenced(t *testing.T, document, heading string) *confmap.Conf {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(text), heading)
	require.True(t, ok, "%s has no %q", document, heading)
	_, after, ok = strings.Cut(after, "```yaml\n")
	require.True(t, ok)
	block, _, ok := strings.Cut(after, "```")
	require.True(t, ok)
	path := filepath.Join(t.TempDir(), "printed.yaml")
	require.NoError(t, os.WriteFile(path, []byte(block), 0o600))
	conf, err := confmaptest.LoadConf(path)
	require.NoError(t, err)
	printed, err := conf.Sub("receivers::rdma")
	require.NoError(t, err)
	return printed
}

func TestReadmePrintsTheWholeDefault(t *testing.T) {
	printed := fenced(t, "README.md", "### Full default")

	// It names every key, and each with the default value.
	want := settingsOf(t, createDefaultConfig())
	assertSameKeys(t, "", want, printed.ToStringMap())
	empty := &Config{}
	require.NoError(t, printed.Unmarshal(empty))
	// Printed, an empty list and none are the same.
	assert.Equal(t, fmt.Sprint(want), fmt.Sprint(settingsOf(t, empty)))
}

// The page on configuration prints every key with its default; metrics and
// events stand there for all that is in them.
func TestDocsPrintEveryKey(t *testing.T) {
	printed := fenced(t, "../../docs/configuration.md", "# Configuration")
	want := settingsOf(t, createDefaultConfig())
	got := printed.ToStringMap()
	for key := range want {
		assert.Contains(t, got, key)
	}
	delete(want, "metrics")
	delete(want, "events")
	empty := &Config{Metrics: metadata.DefaultMetricsConfig(), Events: metadata.DefaultEventsConfig()}
	require.NoError(t, printed.Unmarshal(empty))
	set := settingsOf(t, empty)
	delete(set, "metrics")
	delete(set, "events")
	assert.Equal(t, fmt.Sprint(want), fmt.Sprint(set))
}

func assertSameKeys(t *testing.T, path string, want, got map[string]any) {
	t.Helper()
	for key, value := range want {
		printed, ok := got[key]
		assert.True(t, ok, "README.md does not print %s%s", path, key)
		inner, nested := value.(map[string]any)
		if innerGot, ok := printed.(map[string]any); ok && nested {
			assertSameKeys(t, path+key+"::", inner, innerGot)
		}
	}
	for key := range got {
		assert.Contains(t, want, key, "README.md prints a key that does not exist")
	}
}

// The table of keys in the README has every key with its default.
func TestReadmeListsEveryKeyWithItsDefault(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for key, value := range settingsOf(t, createDefaultConfig()) {
		row := fmt.Sprintf("\n| `%s` | %s | ", key, writtenDefault(value))
		assert.True(t, strings.Contains(string(text), row), "README.md has no row that begins with %q", row)
	}
}

func writtenDefault(value any) string {
	text := strings.ReplaceAll(fmt.Sprint(value), "µs", "us")
	switch _, nested := value.(map[string]any); {
	case nested:
		return "all"
	case text == "" || text == "[]":
		return "none"
	default:
		return "`" + text + "`"
	}
}

// The page on configuration tells what each key with bounds may be set to.
func TestDocsTellTheBounds(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	for _, row := range []string{
		bounds("threshold", minThreshold, maxThreshold),
		bounds("collection_interval", minCollectionInterval, maxCollectionInterval),
		bounds("max_exported_per_second", 1, maxExportedLimit),
		bounds("max_series", minSeries, maxSeriesLimit),
		bounds("max_map_mib", minMapMiB, maxMapMiB),
		bounds("max_thread_cpu_ratio", minThreadCPURatio, maxThreadCPURatio),
		bounds("max_agent_cpu_cores", minAgentCPUCores, maxAgentCPUCores),
	} {
		assert.True(t, strings.Contains(string(text), row), "docs/configuration.md has no row %q", row)
	}
}

func bounds[T int | float64 | time.Duration](key string, least, most T) string {
	return fmt.Sprintf("\n| `%s` | `%v` | `%v` |\n", key, least, most)
}
