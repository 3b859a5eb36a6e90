package packaging

import (
	"bytes"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func readCloser(text []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(text)) }

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(repository + "/config/helm/otelcol-rdma")
	require.NoError(t, err)
	require.NoError(t, loaded.Validate())
	return loaded
}

// render renders the chart with values on top of its own, as helm install does.
func render(t *testing.T, values string) ([]runtime.Object, error) {
	t.Helper()
	var given map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(values), &given))
	loaded := loadChart(t)
	release := common.ReleaseOptions{Name: "otelcol-rdma", Namespace: "otelcol-rdma", IsInstall: true}
	all, err := util.ToRenderValues(loaded, given, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), loaded, all)
	require.NoError(t, err)
	var objects []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(rendered[name]) != "" {
			objects = append(objects, decode(t, []byte(rendered[name]))...)
		}
	}
	return objects, nil
}

// A person may take either: as they come, both run the same pod.
func TestHelmRunsWhatKustomizeDoes(t *testing.T) {
	objects, err := render(t, "")
	require.NoError(t, err)
	require.Len(t, objects, 2)
	charted := only[*appsv1.DaemonSet](t, objects)
	based := only[*appsv1.DaemonSet](t, kustomized(t, inMemory(t), "/base"))
	assert.Equal(t, based.Spec.Template.Spec, charted.Spec.Template.Spec)
	assert.Equal(t, based.Spec.UpdateStrategy, charted.Spec.UpdateStrategy)
	for name, value := range charted.Spec.Selector.MatchLabels {
		assert.Equal(t, value, charted.Spec.Template.Labels[name])
	}
}

func TestHelmValues(t *testing.T) {
	tests := []struct {
		name, values string
		check        func(*testing.T, corev1.PodSpec, []runtime.Object)
	}{
		{"image and where it comes from", "{image: {repository: registry.example.com/agent, tag: v2, pullSecrets: [registry]}}", func(t *testing.T, pod corev1.PodSpec, _ []runtime.Object) {
			assert.Equal(t, "registry.example.com/agent:v2", pod.Containers[0].Image)
			assert.Equal(t, []corev1.LocalObjectReference{{Name: "registry"}}, pod.ImagePullSecrets)
		}},
		{"gateway and token", "{gateway: 'gw.example.com:443', tokenSecret: telemetry}", func(t *testing.T, pod corev1.PodSpec, _ []runtime.Object) {
			assert.Equal(t, "gw.example.com:443", variable(t, pod.Containers[0], "GATEWAY").Value)
			assert.Equal(t, "telemetry", variable(t, pod.Containers[0], "RDMA_TOKEN").ValueFrom.SecretKeyRef.Name)
		}},
		{"configuration", "{config: {receivers: {rdma: {routes: true}}}}", func(t *testing.T, pod corev1.PodSpec, objects []runtime.Object) {
			files := only[*corev1.ConfigMap](t, objects)
			checkExtra(t, pod, files.Name, files.Data["extra.yaml"])
			assert.YAMLEq(t, "receivers: {rdma: {routes: true}}", files.Data["extra.yaml"])
			annotations := only[*appsv1.DaemonSet](t, objects).Spec.Template.Annotations
			assert.Contains(t, annotations, "checksum/config", "a changed configuration starts new pods")
		}},
		{"authority", "{caConfigMap: gateway-ca}", func(t *testing.T, pod corev1.PodSpec, _ []runtime.Object) {
			checkAuthority(t, pod, "gateway-ca", "ca.crt")
		}},
		{"old kernels", "{sysAdmin: true}", func(t *testing.T, pod corev1.PodSpec, _ []runtime.Object) {
			checkPod(t, pod, append(slices.Clone(capabilities), "SYS_ADMIN"))
		}},
		{"where and how much", "{nodeSelector: {rdma: 'true'}, tolerations: [], priorityClassName: system-node-critical, resources: {limits: {memory: 1Gi}}}", func(t *testing.T, pod corev1.PodSpec, _ []runtime.Object) {
			assert.Equal(t, map[string]string{"rdma": "true"}, pod.NodeSelector)
			assert.Empty(t, pod.Tolerations)
			assert.Equal(t, "system-node-critical", pod.PriorityClassName)
			assert.Equal(t, "1Gi", pod.Containers[0].Resources.Limits.Memory().String())
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, err := render(t, test.values)
			require.NoError(t, err)
			test.check(t, only[*appsv1.DaemonSet](t, objects).Spec.Template.Spec, objects)
		})
	}
}

// A value is one string of the manifest, also one that looks like a number or like more of
// the manifest.
func TestHelmValuesStayValues(t *testing.T) {
	for _, value := range []string{"123", "true", "a: b", "a\n      hostIPC: true", "x\"\n          tty: true\n          workingDir: \"/", "{{ .Release.Name }}", "a # b"} {
		values, err := yaml.Marshal(map[string]any{
			"image":       map[string]any{"repository": value, "tag": value, "pullSecrets": []string{value}},
			"tokenSecret": value, "caConfigMap": value, "priorityClassName": value, "nodeSelector": map[string]string{"rdma": value},
		})
		require.NoError(t, err)
		objects, err := render(t, string(values))
		require.NoError(t, err)
		pod := only[*appsv1.DaemonSet](t, objects).Spec.Template.Spec
		assert.Equal(t, value+":"+value, pod.Containers[0].Image)
		assert.Equal(t, []corev1.LocalObjectReference{{Name: value}}, pod.ImagePullSecrets)
		assert.Equal(t, value, variable(t, pod.Containers[0], "RDMA_TOKEN").ValueFrom.SecretKeyRef.Name)
		assert.Equal(t, value, pod.Volumes[len(pod.Volumes)-1].ConfigMap.Name)
		assert.Equal(t, value, pod.PriorityClassName)
		assert.Equal(t, map[string]string{"rdma": value}, pod.NodeSelector)
		assert.False(t, pod.HostIPC)
		assert.False(t, pod.Containers[0].TTY)
	}
}

// docs/rollout.md makes values of the file so.
func TestHelmTakesTheTelemetryOfTheAgent(t *testing.T) {
	text, err := os.ReadFile(repository + "/config/gateway/agent-telemetry.yaml")
	require.NoError(t, err)
	objects, err := render(t, "config:\n  "+strings.ReplaceAll(string(text), "\n", "\n  "))
	require.NoError(t, err)
	extra := only[*corev1.ConfigMap](t, objects).Data["extra.yaml"]
	assert.YAMLEq(t, string(text), extra)
}

func TestHelmRefusesWrongValues(t *testing.T) {
	for name, test := range map[string]struct{ values, says string }{
		"misspelt":          {"{gatewy: 'a:1'}", "gatewy"},
		"gateway, no port":  {"{gateway: example.com}", "gateway"},
		"sysAdmin as text":  {"{sysAdmin: 'yes'}", "sysAdmin"},
		"configuration":     {"{config: text}", "config"},
		"repository, empty": {"{image: {repository: ''}}", "repository"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, test.values)
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.says)
		})
	}
}

func TestHelmChartHasTheVersion(t *testing.T) {
	version, err := Version(repository)
	require.NoError(t, err)
	metadata := loadChart(t).Metadata
	assert.Equal(t, version, metadata.AppVersion)
	assert.Equal(t, version, metadata.Version)
}
