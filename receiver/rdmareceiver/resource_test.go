package rdmareceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Two hosts with the same job have series of their own, also where they share an id, as
// nodes do that boot from one image, or where their names are not known.
func TestHostsAreToldApart(t *testing.T) {
	job := jobKey{service: "llm-training", slurmJob: "81512"}
	for _, pair := range [][2]hostFacts{
		{{Name: "gpu-1", ID: "a"}, {Name: "gpu-2", ID: "b"}},
		{{Name: "gpu-1", ID: "image"}, {Name: "gpu-2", ID: "image"}},
		{{ID: "a"}, {ID: "b"}},
	} {
		instances := map[string]bool{}
		for _, host := range pair {
			for _, resource := range []pcommon.Resource{hostResource(host), jobResource(host, job)} {
				instance, found := resource.Attributes().Get("service.instance.id")
				assert.True(t, found)
				instances[instance.Str()] = true
			}
		}
		assert.Len(t, instances, 4, "%v", pair)
	}
}

func TestHostOfNothingKnownHasNoInstance(t *testing.T) {
	_, found := hostResource(hostFacts{}).Attributes().Get("service.instance.id")
	assert.False(t, found)
}
