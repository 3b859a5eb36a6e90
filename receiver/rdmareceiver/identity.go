package rdmareceiver

import (
	"errors"
	"strings"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// unknownService is the service.name of a process that nothing is known of, as
// the OpenTelemetry SDKs write it.
const unknownService = "unknown_service"

// kernelNamespace is the service.namespace of consumers of verbs in the kernel;
// their service.name is that of their module.
const (
	kernelNamespace = "kernel"
	unknownConsumer = "unknown_consumer"
)

// jobKey is what the metrics of a process are added up under: every process of
// a job on this host, and its restarts, share one. Steps of Slurm and containers have
// one each, as accounting and k8sattributes go by their ids.
type jobKey struct {
	namespace, service, slurmJob, slurmStep, container string
}

// instanceNamespace is the UUID namespace that the semantic conventions lay
// down for a service.instance.id of version 5:
// https://opentelemetry.io/docs/specs/semconv/registry/attributes/service/
var instanceNamespace = uuid.MustParse("4d63009a-8d0f-11ee-aad7-4c796ed8e320")

// instanceID returns the service.instance.id of a job on a host.
func (k jobKey) instanceID(host string) string {
	name := strings.Join([]string{host, k.namespace, k.service, k.slurmJob, k.slurmStep, k.container}, "\x00")
	return uuid.NewSHA1(instanceNamespace, []byte(name)).String()
}

// instanceID returns the service.instance.id of what is measured of the host itself,
// "" when nothing is known of it. The name counts beside the id: nodes that boot from
// one image often share the id, and must not share their series.
func (h hostFacts) instanceID() string {
	if h == (hostFacts{}) {
		return ""
	}
	return uuid.NewSHA1(instanceNamespace, []byte(h.Name+"\x00"+h.ID)).String()
}

// identity is who a traced process is.
type identity struct {
	job   jobKey
	facts process.Facts
	// known is false when no facts could be read.
	known bool
}

func identityOf(facts process.Facts) *identity {
	return &identity{
		job: jobKey{
			namespace: facts.ServiceNamespace, service: orUnknown(facts.ServiceName),
			slurmJob: facts.SlurmJobID, slurmStep: facts.SlurmStepID, container: facts.ContainerID,
		},
		facts: facts,
		known: true,
	}
}

// identityOfConsumer is who a consumer in the kernel is, by the name of its
// module; "" is not known.
func identityOfConsumer(module string) *identity {
	if module == "" {
		module = unknownConsumer
	}
	return &identity{job: jobKey{namespace: kernelNamespace, service: module}}
}

func orUnknown(service string) string {
	if service == "" {
		return unknownService
	}
	return service
}

// identify returns who a process is. A process whose facts cannot be read, or
// not in time, is one without a name.
func identify(source processSource, id verbs.ProcessID, logger *zap.Logger) *identity {
	facts, err := source.Facts(id)
	if err != nil {
		logger.Debug("Facts of a traced process are missing.", zap.Uint32("pid", id.TGID), zap.Error(err))
	}
	if err != nil && !errors.Is(err, process.ErrIncomplete) {
		return &identity{job: jobKey{service: unknownService}}
	}
	return identityOf(facts)
}
