//go:build image

package packaging

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

const (
	device = "radar0"
	// patience bounds the wait for what takes seconds on an idle machine.
	patience = time.Minute
)

// extraConfig is merged into that of the image: the file takes the place of the gateway.
const extraConfig = `receivers:
  rdma:
    threshold: 200us
    collection_interval: 1s
    max_thread_cpu_ratio: 1
    devices: {include: [{strict: ` + device + `}]}
    error_mode: propagate
exporters:
  file: {path: /var/lib/otelcol-rdma/out.jsonl, flush_interval: 100ms}
extensions:
  health_check: {endpoint: "localhost:%d"}
  rdma_radar: {endpoint: "localhost:%d"}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {exporters: [file]}
    metrics: {exporters: [file]}
    logs: {exporters: [file]}
`

// The root of the image runs with the mounts and the capabilities of the pod, and traces
// a process outside.
func TestImageTracesTheHost(t *testing.T) {
	// A child is told when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	agents := only[*appsv1.DaemonSet](t, kustomized(t, inMemory(t), "/base"))
	state := t.TempDir()
	health := freePort(t)
	collector := startImage(t, agents.Spec.Template.Spec, state, health)
	require.NoError(t, collector.AwaitLine(t.Context(), "Everything is ready", patience))
	// As the probes of the pod ask.
	response, err := http.Get(fmt.Sprintf("http://localhost:%d/", health))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusOK, response.StatusCode)

	// A library is probed when a program first uses it.
	require.NoError(t, workload(t, "perftest-lat", "--seconds", "1.5").Wait())
	job := workload(t, "nccl", "--seconds", "10", "--spike-us", "20000", "--spikes-per-second", "3")
	exported := filepath.Join(state, "out.jsonl")
	require.Eventually(t, func() bool { return spansOf(t, exported, job.PID) > 0 }, patience, 100*time.Millisecond,
		"no slow request of process %d in %s", job.PID, exported)
	job.Stop()
	require.NoError(t, job.Wait())

	stop(t, collector)
	machine, err := os.ReadFile("/etc/machine-id")
	require.NoError(t, err)
	text, err := os.ReadFile(exported)
	require.NoError(t, err)
	assert.Contains(t, string(text), strings.TrimSpace(string(machine)), "host.id is the host's")
}

// startImage runs the image that make has built, as a container runtime does: in its
// root directory, with the volumes, the arguments and the capabilities of a pod, and in
// control groups of its own.
func startImage(t *testing.T, pod corev1.PodSpec, state string, health int) *launch.Child {
	t.Helper()
	root := unpacked(t)
	extra := filepath.Join(t.TempDir(), "extra.yaml")
	write(t, extra, fmt.Sprintf(extraConfig, health, freePort(t)), 0o644)
	words := []string{"--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--unshare-cgroup", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"}
	for _, capability := range pod.Containers[0].SecurityContext.Capabilities.Add {
		words = append(words, "--cap-add", "CAP_"+string(capability))
	}
	for _, v := range pod.Containers[0].Env {
		words = append(words, "--setenv", v.Name, v.Value)
	}
	words = append(words, mounts(t, pod, root, state)...)
	words = append(words, "--ro-bind", extra, "/extra.yaml", "/otelcol-rdma")
	words = append(append(words, pod.Containers[0].Args...), "--config=/extra.yaml")
	log := filepath.Join(t.TempDir(), "log")
	collector, err := launch.Start(t.Context(), log, "bwrap", words...)
	require.NoError(t, err)
	t.Cleanup(func() {
		collector.Stop()
		_ = collector.Wait()
		text, _ := os.ReadFile(log)
		if t.Failed() {
			t.Logf("the collector said:\n%s", text)
		}
	})
	return collector
}

// stop ends the collector as a runtime does, and expects that it ends well. bwrap, which
// waits for it, would pass no signal on.
func stop(t *testing.T, bwrap *launch.Child) {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", bwrap.PID))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(children)))
	require.NoError(t, err, "bwrap has one child: %s", children)
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	require.NoError(t, bwrap.Wait())
}

// mounts gives the volumes of a pod to bwrap. Directories that the agent writes to are
// the test's, of which state is that for what is exported.
func mounts(t *testing.T, pod corev1.PodSpec, root, state string) []string {
	t.Helper()
	volumes := map[string]corev1.Volume{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = volume
	}
	var words []string
	for _, mount := range pod.Containers[0].VolumeMounts {
		volume := volumes[mount.Name]
		switch {
		case volume.HostPath == nil:
			words = append(words, "--tmpfs", mount.MountPath)
		case mount.ReadOnly:
			words = append(words, "--ro-bind", volume.HostPath.Path, mount.MountPath)
		case mount.Name == "state":
			words = append(words, "--bind", state, mount.MountPath)
		default:
			words = append(words, "--bind", t.TempDir(), mount.MountPath)
		}
		makeMountPoint(t, filepath.Join(root, mount.MountPath), volume)
	}
	return words
}

// makeMountPoint does what a runtime does before the root becomes read-only.
func makeMountPoint(t *testing.T, path string, volume corev1.Volume) {
	t.Helper()
	if volume.HostPath != nil && *volume.HostPath.Type == corev1.HostPathFile {
		write(t, path, "", 0o644)
		return
	}
	require.NoError(t, os.MkdirAll(path, 0o755))
}

// unpacked is the root directory of the image that make has built.
func unpacked(t *testing.T) string {
	t.Helper()
	index, err := layout.ImageIndexFromPath(repository + "/out/image")
	require.NoError(t, err, "make image makes it")
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	image, err := index.Image(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	root := t.TempDir()
	for name, file := range filesOf(t, image) {
		path := filepath.Join(root, name)
		if file.header.FileInfo().IsDir() {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		write(t, path, file.content, file.header.FileInfo().Mode().Perm())
	}
	for _, directory := range []string{"proc", "dev"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, directory), 0o755))
	}
	write(t, filepath.Join(root, "extra.yaml"), "", 0o644)
	return root
}

// workload runs a simulated job outside.
func workload(t *testing.T, scenario string, flags ...string) *launch.Child {
	t.Helper()
	path := func(name string) string {
		absolute, err := filepath.Abs(filepath.Join(repository, "bin", name))
		require.NoError(t, err)
		return absolute
	}
	words := append([]string{scenario, "--device", device, "--provider", path("libverbsim-rdmav34.so")}, flags...)
	job, err := launch.Start(t.Context(), filepath.Join(t.TempDir(), "log"), path("verbsim"), words...)
	require.NoError(t, err, "make verbsim builds it")
	t.Cleanup(func() { job.Stop(); _ = job.Wait() })
	return job
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// spansOf counts the spans of a process in a file that grows by whole lines.
func spansOf(t *testing.T, path string, pid int) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	count := 0
	for line := range strings.Lines(string(text)) {
		var export struct {
			ResourceSpans []struct {
				Resource struct {
					Attributes []struct {
						Key   string `json:"key"`
						Value struct {
							IntValue string `json:"intValue"`
						} `json:"value"`
					} `json:"attributes"`
				} `json:"resource"`
				ScopeSpans []struct {
					Spans []json.RawMessage `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if json.Unmarshal([]byte(line), &export) != nil {
			continue // The last line may be on its way.
		}
		for _, resource := range export.ResourceSpans {
			for _, attribute := range resource.Resource.Attributes {
				if attribute.Key == "process.pid" && attribute.Value.IntValue == fmt.Sprint(pid) {
					for _, scope := range resource.ScopeSpans {
						count += len(scope.Spans)
					}
				}
			}
		}
	}
	return count
}
