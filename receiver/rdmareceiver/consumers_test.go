package rdmareceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

var aConsumer = verbs.ProcessID{TGID: verbs.KernelTGID | 1, Incarnation: 1}

// A consumer in the kernel is named by its module, and is no process.
func TestConsumerInTheKernelIsNoProcess(t *testing.T) {
	s := &session{engine: &handEngine{}, host: theHost(), logger: zap.NewNop()}
	who := s.identify(aConsumer)
	require.NotNil(t, who)
	assert.Equal(t, jobKey{namespace: "kernel", service: "nvme_rdma"}, who.job)
	assert.Equal(t, "unknown_consumer", identityOfConsumer("").job.service)

	c := fullCompletion()
	c.Queue.Process = aConsumer
	c.CQ, c.WRID = 0, 0
	cfg := createDefaultConfig().(*Config)
	spans := buildTraces([]slowEvent{newSlowEvent(c, who, diagnose.Verdict{Cause: causeUnknown}, theClock(), cfg, &countedIDs{})}, theSurroundings())
	resource := spans.ResourceSpans().At(0)
	service, _ := resource.Resource().Attributes().Get("service.name")
	assert.Equal(t, "nvme_rdma", service.AsString())
	attributes := resource.ScopeSpans().At(0).Spans().At(0).Attributes()
	for _, key := range []string{"process.pid", "process.executable.name", "rdma.cq.handle"} {
		_, onSpan := attributes.Get(key)
		_, onResource := resource.Resource().Attributes().Get(key)
		assert.False(t, onSpan || onResource, key)
	}
	assert.Zero(t, breakdown{pid: true}.ownerOf(aConsumer, who).pid)
}
