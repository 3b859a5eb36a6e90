package process

import (
	"strconv"
	"strings"
)

// Slurm's names of the steps that srun did not start.
const (
	stepBatch       = "batch"
	stepExtern      = "extern"
	stepInteractive = "interactive"
)

// The variables of job and step, the current name first.
var (
	slurmJobKeys  = []string{"SLURM_JOB_ID", "SLURM_JOBID"}
	slurmStepKeys = []string{"SLURM_STEP_ID", "SLURM_STEPID"}
)

// slurmIDs takes job and step from the cgroup, which the process cannot change,
// else from the environment, which it inherits: that may be the wrong one where
// jobs start services.
func slurmIDs(groups cgroups, environ map[string]string) (job, step string) {
	envJob := firstID(environ, slurmJobKeys)
	envStep := slurmStepName(firstID(environ, slurmStepKeys))
	switch {
	case groups.slurmJob == "" && envJob == "":
		return "", ""
	case groups.slurmJob == "":
		return envJob, envStep
	case groups.slurmStep == "" && groups.slurmJob == envJob:
		return groups.slurmJob, envStep
	default:
		return groups.slurmJob, groups.slurmStep
	}
}

// slurmCgroup finds job and step on a path such as
//
//	/system.slice/slurmstepd.scope/job_123/step_0/user/task_0      version 2
//	/slurm/uid_1000/job_123/step_batch/task_0                      version 1
//
// where the first component may carry the node's name.
// https://slurm.schedmd.com/cgroup_v2.html
func slurmCgroup(components []string) (job, step string) {
	inSlurm := false
	for _, component := range components {
		if component == "slurm" || strings.HasPrefix(component, "slurm_") || strings.HasSuffix(component, "slurmstepd.scope") {
			inSlurm = true
		}
		if !inSlurm {
			continue
		}
		if id, found := strings.CutPrefix(component, "job_"); found && job == "" && isDecimal(id) {
			job = id
		}
		if id, found := strings.CutPrefix(component, "step_"); found && job != "" && step == "" && isStep(id) {
			step = id
		}
	}
	return job, step
}

// isStep accepts 0, batch, extern, interactive, and 0+1 for a part of a
// heterogeneous job.
func isStep(id string) bool {
	switch id {
	case stepBatch, stepExtern, stepInteractive:
		return true
	}
	number, component, heterogeneous := strings.Cut(id, "+")
	return isDecimal(number) && (!heterogeneous || isDecimal(component))
}

// slurmStepName gives a step of the environment the name it has in the cgroup.
// The numbers are those of slurm.h.
func slurmStepName(id string) string {
	switch id {
	case "4294967290":
		return stepInteractive
	case "4294967291":
		return stepBatch
	case "4294967292":
		return stepExtern
	default:
		return id
	}
}

func firstID(environ map[string]string, keys []string) string {
	for _, key := range keys {
		if isDecimal(environ[key]) {
			return environ[key]
		}
	}
	return ""
}

// isDecimal reports a plain number of 32 bits as Slurm writes it: at most 10
// digits, and no zero before another one, of which there could be any number.
func isDecimal(text string) bool {
	number, err := strconv.ParseUint(text, 10, 32)
	return err == nil && text == strconv.FormatUint(number, 10)
}
