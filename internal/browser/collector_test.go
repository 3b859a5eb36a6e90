//go:build browser

package browser

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/launch"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
	"github.com/rdmaradar/rdmaradar/internal/verbsim"
)

const (
	device = "radar0"
	// spikeMicroseconds is by how much the simulated device is late now and then: more
	// than the scheduler of a busy machine makes a poller late, so that it is the
	// slowest. quiet is for how long it is not in the beginning.
	spikeMicroseconds = 20_000
	quiet             = 8 * time.Second
	// showLimit is how soon a slow request must be on the page.
	showLimit = 5 * time.Second
	// hostile is the name of a process that would like to be markup.
	hostile = `<img src=x onerror=alert(1)><b>evil`
)

const collectorConfig = `receivers:
  rdma:
    root_path: %s
    threshold: 1ms
    collection_interval: 2s
    max_thread_cpu_ratio: 1
    max_agent_cpu_cores: 1
    devices: {include: [{strict: %s}]}
    error_mode: %s
exporters:
  file: {path: %s}
extensions:
  rdma_radar: {endpoint: "localhost:%d", token: %s}
service:
  extensions: [rdma_radar]
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [rdma], exporters: [file]}
    metrics: {receivers: [rdma], exporters: [file]}
`

// startCollector runs the built collector, by way of another program if one is named,
// and returns the URL of its page.
func startCollector(t *testing.T, root, errorMode string, by ...string) string {
	t.Helper()
	// The collector is another user in one of the tests.
	dir := testbed.Directory(t, 0o777)
	port := testbed.FreePort(t)
	text := fmt.Sprintf(collectorConfig, root, device, errorMode, filepath.Join(dir, "out.jsonl"), port, token)
	collector := testbed.StartCollector(t, dir, text, by...)
	// The host is the address that is listened on, and which one that is has the machine to say.
	url := fmt.Sprintf(`http://[^/"]+:%d/%s/`, port, token)
	require.Regexp(t, url, collector.Log(t), "the log tells where the page is")
	return regexp.MustCompile(url).FindString(collector.Log(t))
}

// startJob runs a simulated job under a hostile name and returns where it writes
// what it did.
func startJob(t *testing.T, root string) (job *launch.Child, truth string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, hostile)
	testbed.CopyProgram(t, testbed.Built(t, "verbsim", "verbsim"), program)
	provider := testbed.Built(t, "libverbsim-rdmav34.so", "verbsim")

	// A library is probed when a program first uses it. This one goes before the job,
	// which is to be followed from its first request.
	first, err := launch.Start(t.Context(), filepath.Join(dir, "first.log"), program,
		"perftest-lat", "--seconds", "1.5", "--device", device, "--sysroot", root, "--provider", provider)
	require.NoError(t, err)
	require.NoError(t, first.Wait())

	truth = filepath.Join(dir, "truth.json")
	job, err = launch.Start(t.Context(), filepath.Join(dir, "job.log"), "nice", "-n", "-15", program, "nccl",
		"--device", device, "--seconds", "16", "--spike-us", fmt.Sprint(spikeMicroseconds), "--spikes-per-second", "3",
		"--start-delay-ms", "500", "--warmup-quiet-ms", fmt.Sprint(quiet.Milliseconds()),
		"--truth", truth, "--sysroot", root, "--provider", provider)
	require.NoError(t, err)
	return job, truth
}

// What the device does is on the page within seconds, and who did it has the name
// that it gave itself, as text.
func TestSpikeOfASimulatedJobIsSeen(t *testing.T) {
	testbed.RequireRoot(t)
	testbed.KeepThread(t)
	root := testbed.Node(t)
	url := startCollector(t, root, "propagate")
	o := openTab(t, 1440, 900)
	o.prefer("dark")
	o.open(url)
	// The device comes with the job.
	assert.Contains(t, []string{"No RDMA queue is in use", "This node has no RDMA device"}, o.text("#headline-title"))

	job, path := startJob(t, root)
	o.waitFor(`document.querySelectorAll('#queues-table tbody tr[aria-rowindex]').length > 0`)
	// The first process only writes: what is slow of it, on a busy machine, is no spike.
	o.waitFor(`[...document.querySelectorAll('#slowest li')].some((e) => /^2\d(\.\d)? ms/.test(e.innerText) && e.innerText.includes('rdma_write_with_imm'))`)
	shown := time.Now()
	o.waitFor(`document.querySelector('.incident') != null`)
	// A collection tells what the probes took of the job's threads.
	o.waitFor(`/took (up to|less than) [\d.]+ % of a thread's time/.test(document.getElementById('overhead').innerText)`)
	t.Log(o.text("#overhead"))
	o.shoot("collector")
	names := o.texts("#queues-table tbody td:first-child")
	assert.Contains(t, strings.Join(names, "\n"), hostile)
	assert.Zero(t, eval[int](o, `document.querySelectorAll('main img, main b').length`), "a name became markup")
	require.NoError(t, job.Wait())

	truth, err := verbsim.Read(path)
	require.NoError(t, err)
	require.NotEmpty(t, truth.Spikes)
	completed := time.Unix(0, int64(truth.Spikes[0].Delivered)+truth.RealtimeOffset)
	assert.LessOrEqual(t, shown.Sub(completed), showLimit)
	t.Logf("on the page %v after its completion", shown.Sub(completed).Round(10*time.Millisecond))
	assert.Contains(t, o.text(".incident h3"), device)
}

// A collector without privileges sees nothing, and its page says why.
func TestUnprivilegedCollector(t *testing.T) {
	testbed.RequireRoot(t)
	testbed.KeepThread(t)
	url := startCollector(t, "/", "ignore", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
	o := openTab(t, 1280, 720)
	o.prefer("dark")
	o.open(url)
	o.waitFor(`document.getElementById('headline-title').innerText === 'Nothing is traced on this node'`)
	assert.Contains(t, o.text("#headline-text"), "CAP_BPF")
	o.shoot("unprivileged-collector")
}
