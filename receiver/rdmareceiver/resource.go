package rdmareceiver

import (
	"cmp"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// hostService is the service.name of what is measured of the host itself.
const hostService = "otelcol-rdma"

// jobResource is the resource of the metrics of a job.
func jobResource(host hostFacts, job jobKey) pcommon.Resource {
	rb := metadata.NewResourceBuilder(metadata.DefaultResourceAttributesConfig())
	setJob(rb, host, job)
	return rb.Emit()
}

// processResource is the resource of the spans and logs of a process.
func processResource(host hostFacts, who *identity) pcommon.Resource {
	rb := metadata.NewResourceBuilder(metadata.DefaultResourceAttributesConfig())
	setJob(rb, host, who.job)
	if who.known {
		rb.SetProcessPid(int64(who.facts.PID))
	}
	if !who.facts.StartTime.IsZero() {
		rb.SetProcessCreationTime(who.facts.StartTime.UTC().Format(time.RFC3339))
	}
	setKnown(rb.SetProcessExecutableName, who.facts.Executable)
	return rb.Emit()
}

// resourceOf is the resource of a process, that of the host when there is none.
func resourceOf(host hostFacts, who *identity) pcommon.Resource {
	if who == nil {
		return hostResource(host)
	}
	return processResource(host, who)
}

// hostResource is the resource of what belongs to no process.
func hostResource(host hostFacts) pcommon.Resource {
	rb := metadata.NewResourceBuilder(metadata.DefaultResourceAttributesConfig())
	rb.SetServiceName(hostService)
	setKnown(rb.SetHostName, host.Name)
	setKnown(rb.SetHostID, host.ID)
	setKnown(rb.SetServiceInstanceID, host.instanceID())
	return rb.Emit()
}

func setJob(rb *metadata.ResourceBuilder, host hostFacts, job jobKey) {
	setKnown(rb.SetHostName, host.Name)
	rb.SetServiceName(job.service)
	rb.SetServiceInstanceID(job.instanceID(cmp.Or(host.Name, host.ID)))
	setKnown(rb.SetServiceNamespace, job.namespace)
	setKnown(rb.SetSlurmJobID, job.slurmJob)
	setKnown(rb.SetSlurmStepID, job.slurmStep)
	setKnown(rb.SetContainerID, job.container)
}

// setKnown sets an attribute, unless its value is not known.
func setKnown(set func(string), value string) {
	if value != "" {
		set(value)
	}
}
