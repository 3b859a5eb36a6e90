package packaging

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	repository = "../.."
	manifests  = repository + "/config/kubernetes"
)

// capabilities are those that the agent needs, without CAP_, on a kernel from 6.6 on.
var capabilities = []corev1.Capability{"BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH", "CHECKPOINT_RESTORE"}

// decode reads manifests as the API server does that is told to be strict: a misspelt
// or doubled field is an error.
func decode(t *testing.T, manifests []byte) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, appsv1.AddToScheme(scheme))
	require.NoError(t, corev1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	documents := yaml.NewDocumentDecoder(readCloser(manifests))
	for {
		document := make([]byte, len(manifests))
		n, err := documents.Read(document)
		if n == 0 {
			break
		}
		require.NoError(t, err)
		object, _, err := decoder.Decode(document[:n], nil, nil)
		require.NoError(t, err, "%s", document[:n])
		objects = append(objects, object)
	}
	return objects
}

// only returns the one object of a type.
func only[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	var found []T
	for _, object := range objects {
		if o, ok := object.(T); ok {
			found = append(found, o)
		}
	}
	require.Len(t, found, 1)
	return found[0]
}

// kustomized builds an overlay, which may be one that only the test has.
func kustomized(t *testing.T, files filesys.FileSystem, path string) []runtime.Object {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, path)
	require.NoError(t, err)
	text, err := built.AsYaml()
	require.NoError(t, err)
	return decode(t, text)
}

// inMemory is a copy of the manifests, to which a test may add.
func inMemory(t *testing.T) filesys.FileSystem {
	t.Helper()
	files := filesys.MakeFsInMemory()
	require.NoError(t, filepath.WalkDir(manifests, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		below, err := filepath.Rel(manifests, path)
		require.NoError(t, err)
		return files.WriteFile("/"+below, content)
	}))
	return files
}

func TestKustomizeBaseHasTheLeastPrivilege(t *testing.T) {
	objects := kustomized(t, inMemory(t), "/base")
	require.Len(t, objects, 3, "a namespace, an account without rights, and the agents")
	namespace := only[*corev1.Namespace](t, objects)
	assert.Equal(t, "privileged", namespace.Labels["pod-security.kubernetes.io/enforce"])
	account := only[*corev1.ServiceAccount](t, objects)
	assert.False(t, *account.AutomountServiceAccountToken)
	agents := only[*appsv1.DaemonSet](t, objects)
	assert.Equal(t, namespace.Name, agents.Namespace)
	assert.Equal(t, agents.Spec.Selector.MatchLabels, agents.Spec.Template.Labels)
	assert.Equal(t, account.Name, agents.Spec.Template.Spec.ServiceAccountName)
	checkPod(t, agents.Spec.Template.Spec, capabilities)

	version, err := Version(repository)
	require.NoError(t, err)
	assert.Equal(t, "otelcol-rdma:"+version, agents.Spec.Template.Spec.Containers[0].Image)
}

// checkPod holds a pod to what it needs and no more.
func checkPod(t *testing.T, pod corev1.PodSpec, capabilities []corev1.Capability) {
	t.Helper()
	assert.True(t, pod.HostPID)
	assert.False(t, pod.HostIPC)
	assert.False(t, *pod.AutomountServiceAccountToken)
	require.Len(t, pod.Containers, 1)
	assert.Empty(t, pod.InitContainers)
	container := pod.Containers[0]
	security := container.SecurityContext
	assert.False(t, *security.Privileged)
	assert.False(t, *security.AllowPrivilegeEscalation)
	assert.True(t, *security.ReadOnlyRootFilesystem)
	assert.Equal(t, []corev1.Capability{"ALL"}, security.Capabilities.Drop)
	assert.Equal(t, capabilities, security.Capabilities.Add)
	assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, security.SeccompProfile.Type)
	assert.NotContains(t, container.Resources.Limits, corev1.ResourceCPU, "an agent that is held up loses what it watches")
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		require.NotNil(t, probe)
		assert.Equal(t, "localhost", probe.HTTPGet.Host, "the health check is not open to the network")
		assert.Contains(t, container.Args, fmt.Sprintf("--config=yaml:extensions::health_check::endpoint: localhost:%d", probe.HTTPGet.Port.IntValue()))
	}
	assert.Contains(t, container.Args, "--config=yaml:service::extensions: [file_storage, health_check, rdma_radar]", "what the probes ask is served")
	checkMounts(t, pod)
}

// writable are the directories of the host that the agent may write to: its own.
var writable = []string{"/var/lib/otelcol-rdma", "/var/cache/otelcol-rdma", "/run/otelcol-rdma"}

func checkMounts(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	mounts := map[string]corev1.VolumeMount{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		mounts[mount.Name] = mount
	}
	for _, volume := range pod.Volumes {
		mount, mounted := mounts[volume.Name]
		require.True(t, mounted, "%s is not mounted", volume.Name)
		delete(mounts, volume.Name)
		if volume.HostPath == nil {
			continue
		}
		assert.Equal(t, volume.HostPath.Path, mount.MountPath, "root_path is /, so that everything is where it is on the host")
		if !mount.ReadOnly {
			assert.Contains(t, writable, volume.HostPath.Path)
		}
	}
	assert.Empty(t, mounts, "mounts without a volume")
}

func TestKustomizeExample(t *testing.T) {
	objects := kustomized(t, inMemory(t), "/overlays/example")
	agents := only[*appsv1.DaemonSet](t, objects)
	pod := agents.Spec.Template.Spec
	checkPod(t, pod, capabilities)
	container := pod.Containers[0]
	assert.Equal(t, "registry.example.com/otelcol-rdma:0.1.0", container.Image)
	assert.Equal(t, "gateway.example.com:4317", variable(t, container, "GATEWAY").Value)
	secret := only[*corev1.Secret](t, objects)
	assert.Equal(t, secret.Name, variable(t, container, "RDMA_TOKEN").ValueFrom.SecretKeyRef.Name, "the name carries a hash of the content, so that a new token is a new pod")
	assert.Contains(t, secret.Data, "token")
	files := only[*corev1.ConfigMap](t, objects)
	checkAuthority(t, pod, files.Name, "gateway-ca.crt")
	assert.Contains(t, files.Data, "gateway-ca.crt")
}

func variable(t *testing.T, container corev1.Container, name string) corev1.EnvVar {
	t.Helper()
	for _, v := range container.Env {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("%s is not set", name)
	return corev1.EnvVar{}
}

// checkAuthority checks that a key of a config map is what the agent trusts besides.
func checkAuthority(t *testing.T, pod corev1.PodSpec, configMap, key string) {
	t.Helper()
	file := variable(t, pod.Containers[0], "SSL_CERT_FILE").Value
	assert.Equal(t, key, path.Base(file))
	volume := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == configMap })
	require.GreaterOrEqual(t, volume, 0, "no volume has the config map %s", configMap)
	assert.Contains(t, pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: pod.Volumes[volume].Name, MountPath: path.Dir(file), ReadOnly: true})
}

// checkExtra checks that a configuration in a config map is read after that of the
// image.
func checkExtra(t *testing.T, pod corev1.PodSpec, configMap, text string) {
	t.Helper()
	assert.NotEmpty(t, text)
	container := pod.Containers[0]
	require.Len(t, container.Args, 4, "checkPod knows two of them")
	assert.Equal(t, "--config="+imageConfig, container.Args[0])
	assert.Equal(t, "--config=/etc/otelcol-rdma/extra/extra.yaml", container.Args[3], "what comes last is what counts")
	for _, volume := range pod.Volumes {
		if volume.ConfigMap != nil && volume.ConfigMap.Name == configMap {
			return
		}
	}
	t.Errorf("no volume has the config map %s", configMap)
}

func TestKustomizeComponentAddsOneCapability(t *testing.T) {
	files := inMemory(t)
	require.NoError(t, files.WriteFile("/overlays/old/kustomization.yaml", []byte(`
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../base]
components: [../../components/sys-admin]
`)))
	agents := only[*appsv1.DaemonSet](t, kustomized(t, files, "/overlays/old"))
	checkPod(t, agents.Spec.Template.Spec, append(capabilities[:len(capabilities):len(capabilities)], "SYS_ADMIN"))
}
