package rdmareceiver

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/filter"

	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// ErrorMode says what a failure to start tracing does to the collector.
type ErrorMode string

// The values of error_mode.
const (
	// ErrorModeIgnore reports a permanent error as the status of the receiver
	// and keeps the collector running.
	ErrorModeIgnore ErrorMode = "ignore"
	// ErrorModePropagate fails the start of the receiver, and with it that of
	// the collector. The start then waits for the probes.
	ErrorModePropagate ErrorMode = "propagate"
)

// ProbeMode is the highest rung of the ladder of modes in which the completions
// of a function are observed: site, windows, off.
type ProbeMode string

// The values of probe_mode.
const (
	// ProbeModeAuto stands at completion sites where a function has usable ones.
	ProbeModeAuto ProbeMode = "auto"
	// ProbeModeWindows stands at entry and return alone, which costs on every
	// poll, for as much of the time as the bounds allow.
	ProbeModeWindows ProbeMode = "windows"
)

// HistogramKind is the kind of rdma.wqe.duration.
type HistogramKind string

// The values of histogram.
const (
	// HistogramExponential is an exponential histogram of scale 3.
	HistogramExponential HistogramKind = "exponential"
	// HistogramExplicit is a histogram with the bounds of ExplicitBounds, for
	// backends that do not take exponential ones.
	HistogramExplicit HistogramKind = "explicit"
)

// Bounds of the settings. They keep a slip of the pen, such as a threshold in
// the wrong unit, from flooding the pipeline or hiding everything.
const (
	minThreshold          = time.Microsecond
	maxThreshold          = time.Minute
	minCollectionInterval = time.Second
	maxCollectionInterval = 10 * time.Minute
	maxExportedLimit      = 10_000
	minSeries             = 100
	maxSeriesLimit        = 1_000_000
	minMapMiB             = 24 // what the maps take at the least with 256 processors
	maxMapMiB             = 4096
	minThreadCPURatio     = 0.001
	maxThreadCPURatio     = 1.0
	minAgentCPUCores      = 0.005
	maxAgentCPUCores      = 16.0
)

// Filters select by name. A name is taken when it matches include, or include
// is empty, and does not match exclude.
type Filters struct {
	// Include lists names to take, each as strict or regexp. Empty: all.
	Include []filter.Config `mapstructure:"include"`
	// Exclude lists names to leave out. It wins over include.
	Exclude []filter.Config `mapstructure:"exclude"`

	_ struct{}
}

// Config is the configuration of the receiver. The default is complete.
type Config struct {
	// Threshold is by how much a work request may take longer than the port
	// was busy before it is slow, unless as much is usual for its peer, operation
	// and size. What takes 16 times as long is slow always. Default 50us.
	Threshold time.Duration `mapstructure:"threshold"`
	// CollectionInterval is the time between two exports of metrics. Default
	// 10s.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// MaxExportedPerSecond is how many slow work requests the host exports as
	// spans and logs in a second, with bursts of ten times as many. The
	// slowest of each device come first. Default 5.
	MaxExportedPerSecond int `mapstructure:"max_exported_per_second"`
	// MaxSeries is how many metric series of processes the host exports; the
	// rest is added up in points with the attribute otel.metric.overflow. Those
	// of devices, at most some 80 for each port, are not counted. Default 2000.
	MaxSeries int `mapstructure:"max_series"`
	// MetricAttributes splits metrics further: process.pid and rdma.rank those of
	// processes, rdma.qp.number and rdma.cq.handle those of queues. Each
	// multiplies the series, which MaxSeries bounds. Default none.
	MetricAttributes []MetricAttribute `mapstructure:"metric_attributes"`
	// Routes exports metrics of who talks to whom over what: rdma.route.queues,
	// throughput, duration and slow_completions, of the 64 routes of each device
	// with the most bytes. They name peers, and so need PeerAddresses; MaxSeries
	// bounds them with the others. Default false.
	Routes bool `mapstructure:"routes"`
	// MaxMapMiB is how much memory the BPF maps may take, in MiB. Requests that
	// find no room are counted and not timed. It is always 4,096 queues that are
	// followed. Default 32.
	MaxMapMiB int `mapstructure:"max_map_mib"`
	// MaxThreadCPURatio is the part of a traced thread's time that the probes in
	// it may take. A library over it is observed in windows of time, as
	// rdma.probe.observed_share tells. 1 sets no bound. Default 0.1.
	MaxThreadCPURatio float64 `mapstructure:"max_thread_cpu_ratio"`
	// MaxAgentCPUCores is how much CPU time the tracer itself may take, in cores.
	// Over it, all libraries are observed in windows of time. What the pipeline
	// does with its data is not in it. Default 0.05.
	MaxAgentCPUCores float64 `mapstructure:"max_agent_cpu_cores"`
	// ProbeMode is the highest mode in which completions are observed: auto or
	// windows. Default auto.
	ProbeMode ProbeMode `mapstructure:"probe_mode"`
	// CQETimestamps reads the time stamps that mlx5 devices write into the entries
	// of CQs, to tell a poller that was late from the device on the spans and logs of
	// slow work requests. Experimental: it has never run on hardware. Default false.
	CQETimestamps bool `mapstructure:"cqe_timestamps"`
	// Histogram is the kind of rdma.wqe.duration: exponential or explicit.
	// Default exponential.
	Histogram HistogramKind `mapstructure:"histogram"`
	// SlowLogs emits the log rdma.wqe.slow also while a traces pipeline exports
	// the same work request as a span. Default false.
	SlowLogs bool `mapstructure:"slow_logs"`
	// ParentFromTraceparent makes the TRACEPARENT of a process the parent of
	// its spans. By default it is a link, because it names work that began long
	// before. Default false.
	ParentFromTraceparent bool `mapstructure:"parent_from_traceparent"`
	// StageSpans gives the span of a work request a child for each of its stages,
	// which are attributes of it in any case. Default false.
	StageSpans bool `mapstructure:"stage_spans"`
	// PeerAddresses puts the addresses of peers on spans and logs:
	// network.peer.address, rdma.peer.gid and rdma.peer.lid. Default true.
	PeerAddresses bool `mapstructure:"peer_addresses"`
	// Processes selects processes by the name of their executable, and consumers
	// in the kernel by that of their module, as in
	// process.executable.name. Default all.
	Processes Filters `mapstructure:"processes"`
	// Devices selects RDMA devices by name, such as mlx5_0. Default all.
	Devices Filters `mapstructure:"devices"`
	// Counters selects, among those devices, by name the ones whose counters are
	// read: some firmware logs every read. Default all.
	Counters Filters `mapstructure:"counters"`
	// ErrorMode says what happens when tracing cannot start: ignore reports a
	// permanent error and keeps the collector running, propagate makes the
	// collector fail to start.
	// Default ignore.
	ErrorMode ErrorMode `mapstructure:"error_mode"`
	// RootPath is where the root directory of the host is mounted, for a
	// collector in a container. Default /.
	RootPath string `mapstructure:"root_path"`
	// CacheDirectory keeps what was found out about the libraries of the host, so
	// that the next start need not find it out again: where their functions are,
	// and which completion sites were verified. It is made if there is none, and
	// nobody but the collector and root may be able to write to it. Default
	// none: nothing is kept.
	CacheDirectory string `mapstructure:"cache_directory"`
	// Metrics switches single metrics off and drops their attributes.
	Metrics metadata.MetricsConfig `mapstructure:"metrics"`
	// Events switches single kinds of log records off.
	Events metadata.EventsConfig `mapstructure:"events"`

	// misread has what is wrong with numbers as they were written, by key.
	misread map[string]error

	_ struct{}
}

// createDefaultConfig returns the configuration that `rdma:` alone stands for.
func createDefaultConfig() component.Config {
	metrics := metadata.DefaultMetricsConfig()
	// Of extremes only a further extreme means something.
	metrics.RdmaProbeObservedShare.AggregationStrategy = metadata.AggregationStrategyMin
	metrics.RdmaRouteDuration.AggregationStrategy = metadata.AggregationStrategyMax
	metrics.RdmaRouteSlowCompletions.AggregationStrategy = metadata.AggregationStrategySum
	metrics.RdmaRouteThroughput.AggregationStrategy = metadata.AggregationStrategySum
	metrics.RdmaSqPeakOutstanding.AggregationStrategy = metadata.AggregationStrategyMax
	metrics.RdmaSqUtilization.AggregationStrategy = metadata.AggregationStrategyMax
	metrics.RdmaWqeOldestOutstanding.AggregationStrategy = metadata.AggregationStrategyMax
	// Of several ports the one that is down and the slowest way count.
	metrics.RdmaPortUp.AggregationStrategy = metadata.AggregationStrategyMin
	metrics.RdmaPortBandwidthLimit.AggregationStrategy = metadata.AggregationStrategySum
	metrics.RdmaDevicePcieBandwidthLimit.AggregationStrategy = metadata.AggregationStrategyMin
	metrics.RdmaDevicePcieBandwidthNegotiated.AggregationStrategy = metadata.AggregationStrategyMin
	metrics.RdmaDevicePcieStalled.AggregationStrategy = metadata.AggregationStrategyMax
	metrics.RdmaDeviceInfo.AggregationStrategy = metadata.AggregationStrategyMax
	return &Config{
		Threshold:            50 * time.Microsecond,
		CollectionInterval:   10 * time.Second,
		MaxExportedPerSecond: 5,
		MaxSeries:            2000,
		MaxMapMiB:            32,
		MaxThreadCPURatio:    0.1,
		MaxAgentCPUCores:     0.05,
		ProbeMode:            ProbeModeAuto,
		Histogram:            HistogramExponential,
		PeerAddresses:        true,
		ErrorMode:            ErrorModeIgnore,
		RootPath:             "/",
		Metrics:              metrics,
		Events:               metadata.DefaultEventsConfig(),
	}
}

// Validate reports every setting that cannot be honoured, each with its key
// and the remedy.
func (c *Config) Validate() error {
	return errors.Join(
		cmp.Or(c.misread["threshold"], durationInRange("threshold", c.Threshold, minThreshold, maxThreshold)),
		cmp.Or(c.misread["collection_interval"], durationInRange("collection_interval", c.CollectionInterval, minCollectionInterval, maxCollectionInterval)),
		cmp.Or(c.misread["max_exported_per_second"], inRange("max_exported_per_second", c.MaxExportedPerSecond, 1, maxExportedLimit)),
		cmp.Or(c.misread["max_series"], inRange("max_series", c.MaxSeries, minSeries, maxSeriesLimit)),
		cmp.Or(c.misread["max_map_mib"], inRange("max_map_mib", c.MaxMapMiB, minMapMiB, maxMapMiB)),
		inRange("max_thread_cpu_ratio", c.MaxThreadCPURatio, minThreadCPURatio, maxThreadCPURatio),
		inRange("max_agent_cpu_cores", c.MaxAgentCPUCores, minAgentCPUCores, maxAgentCPUCores),
		oneOf("probe_mode", c.ProbeMode, ProbeModeAuto, ProbeModeWindows),
		validateMetricAttributes(c.MetricAttributes),
		c.validateRoutes(),
		oneOf("histogram", c.Histogram, HistogramExponential, HistogramExplicit),
		oneOf("error_mode", c.ErrorMode, ErrorModeIgnore, ErrorModePropagate),
		c.validateRootPath(),
		c.validateCacheDirectory(),
	)
}

func (c *Config) validateRoutes() error {
	if !c.Routes || c.PeerAddresses {
		return nil
	}
	return errors.New("routes is true and peer_addresses is false: routes name peers, set one of the two to its default")
}

func (c *Config) validateRootPath() error {
	if filepath.IsAbs(c.RootPath) {
		return nil
	}
	return fmt.Errorf("root_path is %q: set it to the absolute path where the host's root directory is mounted, / outside a container", c.RootPath)
}

func (c *Config) validateCacheDirectory() error {
	if c.CacheDirectory == "" || filepath.IsAbs(c.CacheDirectory) {
		return nil
	}
	return fmt.Errorf("cache_directory is %q: set it to the absolute path of a directory that the collector may write to, or to \"\" to keep nothing", c.CacheDirectory)
}

func inRange[T int | float64 | time.Duration](key string, value, low, high T) error {
	if low <= value && value <= high {
		return nil
	}
	return fmt.Errorf("%s is %v: set it to a value from %v to %v", key, value, low, high)
}

// durationInRange is inRange with a hint where the value was left out.
func durationInRange(key string, value, low, high time.Duration) error {
	err := inRange(key, value, low, high)
	if err != nil && value == 0 {
		return fmt.Errorf("%w; a key without a value is 0: remove it for the default", err)
	}
	return err
}

func oneOf[T ~string](key string, value T, allowed ...T) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return fmt.Errorf("%s is %q: set it to one of %q", key, value, allowed)
}

// matcher compiles the filters, which must have been validated. It is nil when
// they take everything.
func (f *Filters) matcher() func(name string) bool {
	if len(f.Include) == 0 && len(f.Exclude) == 0 {
		return nil
	}
	include, exclude := filter.CreateFilter(f.Include), filter.CreateFilter(f.Exclude)
	return func(name string) bool {
		if len(f.Include) > 0 && !include.Matches(name) {
			return false
		}
		return !exclude.Matches(name)
	}
}
