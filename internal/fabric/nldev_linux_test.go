package fabric

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the kernel lists is what the rdma tool prints. Run where there are RDMA
// devices, and the tool.
func TestResourcesOfThisMachine(t *testing.T) {
	if _, err := os.Stat("/sys/class/infiniband"); err != nil {
		t.Skip("this machine has no RDMA device; recorded dumps are parsed in the other tests")
	}
	rdma, err := exec.LookPath("rdma")
	if err != nil {
		t.Skip("this machine has no rdma tool to compare with")
	}
	resources, err := OpenResources()
	require.NoError(t, err)
	defer func() { require.NoError(t, resources.Close()) }()
	qps, err := resources.QPs()
	require.NoError(t, err)
	assert.Len(t, qps, linesOf(t, rdma, "qp"))
	cqs, err := resources.CQs()
	require.NoError(t, err)
	assert.Len(t, cqs, linesOf(t, rdma, "cq"))
	mrs, err := resources.MRs()
	require.NoError(t, err)
	assert.Len(t, mrs, linesOf(t, rdma, "mr"))
}

func linesOf(t *testing.T, rdma, resource string) int {
	t.Helper()
	output, err := exec.Command(rdma, "resource", "show", resource).Output()
	require.NoError(t, err)
	return strings.Count(string(output), "\n")
}
