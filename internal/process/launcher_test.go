package process

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// variables parses "KEY=value KEY=value".
func variables(text string) map[string]string {
	parsed := map[string]string{}
	for _, pair := range strings.Fields(text) {
		key, value, _ := strings.Cut(pair, "=")
		parsed[key] = value
	}
	return parsed
}

func TestPlacement(t *testing.T) {
	place := func(rank, local, size int) Placement {
		var p Placement
		for value, into := range map[*int]**int{&rank: &p.Rank, &local: &p.LocalRank, &size: &p.WorldSize} {
			if *value >= 0 {
				*into = value
			}
		}
		return p
	}
	none := Placement{}
	for _, test := range []struct {
		name, environ, step string
		want                Placement
	}{
		{"none", "PATH=/bin", "", none},
		{"torchrun", "RANK=13 LOCAL_RANK=5 WORLD_SIZE=64", "", place(13, 5, 64)},
		{"torchrun, one process", "RANK=0 WORLD_SIZE=1", "", place(0, -1, 1)},
		{"the word RANK alone", "RANK=4", "", none},
		{"Open MPI", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=1", "", place(1, 0, 2)},
		{"MVAPICH2", "MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_LOCAL_RANK=1 MV2_COMM_WORLD_SIZE=2", "", place(1, 1, 2)},
		{"Intel MPI", "PMI_RANK=7 PMI_SIZE=8 MPI_LOCALRANKID=3 MPI_LOCALNRANKS=4", "", place(7, 3, 8)},
		{"Cray", "PMI_RANK=7 PMI_SIZE=8 PMI_LOCAL_RANK=3", "", place(7, 3, 8)},
		{"PALS", "PALS_RANKID=7 PALS_LOCAL_RANKID=3", "", place(7, 3, -1)},
		{"Flux", "FLUX_TASK_RANK=7 FLUX_TASK_LOCAL_ID=3 FLUX_JOB_SIZE=8", "", place(7, 3, 8)},
		{"prterun", "PMIX_RANK=7 PMIX_NAMESPACE=prterun-n1-88@1", "", place(7, -1, -1)},
		{"srun", "SLURM_PROCID=9 SLURM_LOCALID=1 SLURM_NTASKS=16", "0", place(9, 1, 16)},
		{"srun, fewer tasks than the job", "SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=16", "0", place(1, 1, 2)},
		{"srun --mpi=pmix", "PMIX_RANK=9 PMIX_NAMESPACE=slurm.pmix.5.0 SLURM_PROCID=9 SLURM_LOCALID=1 SLURM_NTASKS=16", "0", place(9, 1, 16)},
		{"srun --mpi=pmi2", "PMI_RANK=9 PMI_SIZE=16 SLURM_PROCID=9 SLURM_LOCALID=1 SLURM_NTASKS=16", "0", place(9, 1, 16)},
		{"hydra under srun", "PMI_RANK=0 PMI_SIZE=16 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=2", "0", place(0, -1, 16)},
		{"prterun under srun", "PMIX_RANK=0 PMIX_NAMESPACE=prterun-1 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=2", "0", place(0, -1, -1)},
		{"torchrun under srun", "RANK=13 LOCAL_RANK=5 WORLD_SIZE=64 SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NTASKS=8", "0", place(13, 5, 64)},
		{"torchrun under Open MPI", "RANK=13 WORLD_SIZE=64 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_SIZE=8", "", place(13, -1, 64)},
		{"batch script", "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=16", "batch", none},
		{"extern step", "SLURM_PROCID=0 SLURM_NTASKS=16", "extern", none},
		{"mpirun in a batch script", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 SLURM_PROCID=0 SLURM_NTASKS=2", "batch", place(1, -1, 2)},
		{"rank out of the world", "RANK=4 WORLD_SIZE=4", "", none},
		{"contradiction gives way", "RANK=4 WORLD_SIZE=4 SLURM_PROCID=1 SLURM_NTASKS=2", "0", place(1, -1, 2)},
		{"local rank out of the world", "RANK=0 LOCAL_RANK=4 WORLD_SIZE=4", "", none},
		{"not numbers", "RANK=-1 WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=one PMI_RANK=99999999999 SLURM_PROCID=0x1", "", none},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, placementOf(variables(test.environ), test.step))
		})
	}
}

func FuzzPlacement(f *testing.F) {
	f.Add("13", "5", "64", "1", "8")
	f.Add("0", "", "1", "0", "1")
	f.Add("-1", "x", "99999999999", "", "")
	f.Fuzz(func(t *testing.T, rank, local, size, outerRank, outerSize string) {
		got := placementOf(map[string]string{
			"PMI_RANK": rank, "MPI_LOCALRANKID": local, "PMI_SIZE": size,
			"SLURM_PROCID": outerRank, "SLURM_LOCALID": local, "SLURM_NTASKS": outerSize,
		}, "")
		if got.Rank == nil {
			require.Equal(t, Placement{}, got)
			return
		}
		if got.WorldSize != nil {
			require.Less(t, *got.Rank, *got.WorldSize)
		}
	})
}
