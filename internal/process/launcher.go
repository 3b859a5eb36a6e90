package process

import (
	"strconv"
	"strings"
)

// Placement is the place of a process in its job, as its launcher told it in
// the environment. A value that is not known is nil.
type Placement struct {
	// Rank counts from 0 over the whole job, LocalRank on this node.
	Rank, LocalRank *int
	// WorldSize is the number of ranks of the job.
	WorldSize *int
}

// launcher lists the variables a launcher sets; the first that holds a number
// counts.
type launcher struct {
	rank, localRank, worldSize []string
	// sized launchers always give the size; without it the rank's name is too
	// common a word to believe.
	sized bool
}

// launchers are in order of precedence: the innermost first, because a launcher
// that was itself launched by another one inherits the outer one's variables
// (torchrun under srun has SLURM_PROCID number nodes, not ranks). All values of
// a process come from one launcher; see complete for the one exception.
var launchers = []launcher{
	// torchrun, and what follows its convention (DeepSpeed, Accelerate):
	// https://docs.pytorch.org/docs/stable/elastic/run.html
	{rank: []string{"RANK"}, localRank: []string{"LOCAL_RANK"}, worldSize: []string{"WORLD_SIZE"}, sized: true},
	// Open MPI: https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html
	{
		rank:      []string{"OMPI_COMM_WORLD_RANK"},
		localRank: []string{"OMPI_COMM_WORLD_LOCAL_RANK"},
		worldSize: []string{"OMPI_COMM_WORLD_SIZE"},
	},
	// MVAPICH2
	{
		rank:      []string{"MV2_COMM_WORLD_RANK"},
		localRank: []string{"MV2_COMM_WORLD_LOCAL_RANK"},
		worldSize: []string{"MV2_COMM_WORLD_SIZE"},
	},
	// PMI: MPICH, Intel MPI and MVAPICH (hydra sets MPI_LOCALRANKID), Cray
	{
		rank:      []string{"PMI_RANK"},
		localRank: []string{"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
		worldSize: []string{"PMI_SIZE"},
	},
	// PALS, HPE Cray
	{rank: []string{"PALS_RANKID"}, localRank: []string{"PALS_LOCAL_RANKID"}, worldSize: []string{"PALS_SIZE"}},
	// Flux
	{rank: []string{"FLUX_TASK_RANK"}, localRank: []string{"FLUX_TASK_LOCAL_ID"}, worldSize: []string{"FLUX_JOB_SIZE"}},
	// PMIx, under a launcher that sets nothing else (prterun)
	{rank: []string{keyPMIxRank}},
	// Slurm: https://slurm.schedmd.com/srun.html
	{
		rank:      []string{keySlurmRank},
		localRank: []string{"SLURM_LOCALID"},
		worldSize: []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
	},
}

const (
	keyPMIxRank  = "PMIX_RANK"
	keySlurmRank = "SLURM_PROCID"
)

// placementOf finds the place of a process whose Slurm step is known or "".
func placementOf(environ map[string]string, slurmStep string) Placement {
	var found Placement
	for _, l := range launchers {
		if launcherMisleads(l, environ, slurmStep) {
			continue
		}
		next, ok := l.placement(environ)
		switch {
		case !ok:
		case found.Rank == nil:
			found = next
		default:
			found = complete(found, next)
		}
	}
	return found
}

// launcherMisleads reports variables that are set and do not mean a rank of
// this process. Slurm's PMIx plugin names its namespaces "slurm.pmix.…" and
// gives the same rank as Slurm, which knows more. The shell of a batch script
// is task 0 of a step of its own, whatever the number of tasks of the job.
func launcherMisleads(l launcher, environ map[string]string, slurmStep string) bool {
	switch l.rank[0] {
	case keyPMIxRank:
		return strings.HasPrefix(environ[keyPMIxNamespace], "slurm.")
	case keySlurmRank:
		return slurmStep == stepBatch || slurmStep == stepExtern || slurmStep == stepInteractive
	default:
		return false
	}
}

// placement reads one launcher's variables; false when they give no rank or
// contradict themselves.
func (l launcher) placement(environ map[string]string) (Placement, bool) {
	p := Placement{
		Rank:      firstNumber(environ, l.rank),
		LocalRank: firstNumber(environ, l.localRank),
		WorldSize: firstNumber(environ, l.worldSize),
	}
	if p.Rank == nil || l.sized && p.WorldSize == nil {
		return Placement{}, false
	}
	if p.WorldSize == nil {
		return p, true
	}
	if *p.Rank >= *p.WorldSize || p.LocalRank != nil && *p.LocalRank >= *p.WorldSize {
		return Placement{}, false
	}
	return p, true
}

// complete takes the local rank from an outer launcher if that one numbers the
// processes alike: same rank of the same size. (srun --mpi=pmi2 sets PMI_RANK
// and PMI_SIZE, and the local rank only as SLURM_LOCALID.)
func complete(inner, outer Placement) Placement {
	alike := inner.WorldSize != nil && outer.WorldSize != nil &&
		*inner.WorldSize == *outer.WorldSize && *inner.Rank == *outer.Rank
	if inner.LocalRank == nil && alike {
		inner.LocalRank = outer.LocalRank
	}
	return inner
}

func firstNumber(environ map[string]string, keys []string) *int {
	for _, key := range keys {
		number, err := strconv.ParseUint(environ[key], 10, 31)
		if err == nil {
			value := int(number)
			return &value
		}
	}
	return nil
}
