package process

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestContainerID(t *testing.T) {
	id, outer := strings.Repeat("0123456789abcdef", 4), strings.Repeat("f", 64)
	for name, test := range map[string]struct{ text, want string }{
		"none":                         {"0::/user.slice/user-1000.slice/session-3.scope\n", ""},
		"empty":                        {"", ""},
		"docker, v1":                   {"12:pids:/docker/" + id + "\n1:name=systemd:/docker/" + id + "\n", id},
		"docker, systemd":              {"0::/system.slice/docker-" + id + ".scope\n", id},
		"docker in kubernetes, v1":     {"5:cpu:/kubepods/besteffort/pod87a18a64-b74a-454a-b10b-a4a36059d0a3/" + id + "\n", id},
		"containerd in kubernetes":     {"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + id + ".scope\n", id},
		"containerd, drivers at odds":  {"11:devices:/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" + id + "\n", id},
		"CRI-O":                        {"0::/kubepods.slice/kubepods-pod1.slice/crio-" + id + ".scope\n", id},
		"CRI-O, container below":       {"0::/kubepods.slice/crio-" + id + ".scope/container\n", id},
		"CRI-O's monitor":              {"0::/kubepods.slice/crio-conmon-" + id + ".scope\n", ""},
		"podman":                       {"0::/machine.slice/libpod-" + id + ".scope\n", id},
		"podman, rootless":             {"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope/container\n", id},
		"podman, cgroupfs":             {"0::/libpod_parent/libpod-" + id + "\n", id},
		"podman's monitor":             {"0::/machine.slice/libpod-conmon-" + id + ".scope\n", ""},
		"nerdctl":                      {"0::/system.slice/nerdctl-" + id + ".scope\n", id},
		"innermost":                    {"0::/docker/" + outer + "/kubelet/kubepods/cri-containerd-" + id + ".scope\n", id},
		"above the reader's namespace": {"0::/../../docker-" + id + ".scope\n", id},
		"unified first":                {"4:memory:/docker/" + outer + "\n0::/docker/" + id + "\n", id},
		"unified empty":                {"4:memory:/docker/" + id + "\n0::/\n", id},
		"upper case":                   {"0::/docker/" + strings.ToUpper(id) + "\n", ""},
		"too short":                    {"0::/docker/" + id[1:] + "\n", ""},
		"not hexadecimal":              {"0::/docker/" + id[1:] + "g\n", ""},
		"malformed lines":              {"\n::\nx\n0:/docker/" + id + "\n", ""},
	} {
		assert.Equal(t, test.want, parseCgroups(test.text).container, name)
	}
}

func TestSlurmIDs(t *testing.T) {
	for name, test := range map[string]struct {
		cgroup    string
		environ   map[string]string
		job, step string
	}{
		"none":                 {"0::/user.slice\n", nil, "", ""},
		"v2":                   {"0::/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_0\n", nil, "1392969", "0"},
		"v2, several slurmd":   {"0::/system.slice/node1_slurmstepd.scope/job_5/step_batch/user/task_special\n", nil, "5", "batch"},
		"v1":                   {"10:devices:/slurm/uid_2101171/job_280678/step_interactive/task_0\n", nil, "280678", "interactive"},
		"v1, several slurmd":   {"10:devices:/slurm_node1/uid_0/job_280678/step_extern\n", nil, "280678", "extern"},
		"heterogeneous":        {"0::/system.slice/slurmstepd.scope/job_5/step_3+1/user\n", nil, "5", "3+1"},
		"container in a job":   {"0::/system.slice/slurmstepd.scope/job_5/step_3/user/libpod-" + strings.Repeat("a", 64) + ".scope\n", nil, "5", "3"},
		"not Slurm's":          {"0::/user.slice/job_5/step_0\n", nil, "", ""},
		"daemon itself":        {"0::/system.slice/slurmstepd.scope/system\n", nil, "", ""},
		"odd names":            {"0::/slurm/job_x/job_6/step_y/step_7\n", nil, "6", "7"},
		"too large":            {"0::/slurm/job_99999999999\n", nil, "", ""},
		"environment":          {"0::/\n", map[string]string{"SLURM_JOB_ID": "8", "SLURM_STEP_ID": "2"}, "8", "2"},
		"old names":            {"0::/\n", map[string]string{"SLURM_JOBID": "8", "SLURM_STEPID": "4294967291"}, "8", "batch"},
		"step without job":     {"0::/\n", map[string]string{"SLURM_STEP_ID": "2"}, "", ""},
		"ten digits":           {"0::/\n", map[string]string{"SLURM_JOB_ID": "4294967295", "SLURM_STEP_ID": "0"}, "4294967295", "0"},
		"a leading zero":       {"0::/slurm/job_05/step_0\n", map[string]string{"SLURM_JOB_ID": "08"}, "", ""},
		"thousands of zeros":   {"0::/\n", map[string]string{"SLURM_JOB_ID": strings.Repeat("0", 8000) + "1"}, "", ""},
		"a sign":               {"0::/\n", map[string]string{"SLURM_JOB_ID": "+8"}, "", ""},
		"not a number":         {"0::/\n", map[string]string{"SLURM_JOB_ID": "8;rm"}, "", ""},
		"cgroup goes first":    {"0::/slurm/job_5/step_0\n", map[string]string{"SLURM_JOB_ID": "8", "SLURM_STEP_ID": "2"}, "5", "0"},
		"step of the same job": {"0::/slurm/job_8\n", map[string]string{"SLURM_JOB_ID": "8", "SLURM_STEP_ID": "2"}, "8", "2"},
		"step of another job":  {"0::/slurm/job_5\n", map[string]string{"SLURM_JOB_ID": "8", "SLURM_STEP_ID": "2"}, "5", ""},
	} {
		job, step := slurmIDs(parseCgroups(test.cgroup), test.environ)
		assert.Equal(t, test.job, job, name)
		assert.Equal(t, test.step, step, name)
	}
}

func FuzzParseCgroups(f *testing.F) {
	f.Add("0::/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_0\n")
	f.Add("4:memory:/docker/" + strings.Repeat("a", 64) + "\n0::/\n")
	f.Add("0::/libpod-conmon-" + strings.Repeat("a", 64) + ".scope\n")
	f.Add("::\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := parseCgroups(text)
		if got.container != "" {
			require.Len(t, got.container, containerIDLength)
			require.True(t, isHex(got.container))
		}
		require.True(t, got.slurmJob == "" || isDecimal(got.slurmJob))
		require.True(t, got.slurmStep == "" || isStep(got.slurmStep))
		require.True(t, got.slurmStep == "" || got.slurmJob != "")
	})
}
