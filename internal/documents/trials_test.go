package documents

// trial is a command of a document that the tests of `make backends` run as it stands, in
// the root of a copy of the repository.
type trial struct {
	command string
	// says is a pattern of what it prints.
	says string
	// status is the highest exit status that is a good end.
	status int
	// serves is true of what goes on until it is told to end, and is ready once it has
	// printed what it says. How it ends is not judged: nobody takes what it has to send.
	serves bool
	// meanwhile are those that ask it.
	meanwhile []trial
	// leaves is a file that it writes, and a pattern of what is in it.
	leaves, holding string
}

const ready = "Everything is ready"

var trials = []trial{
	{
		command: "bin/otelcol-rdma --config config/debug.yaml", says: ready, serves: true,
		meanwhile: []trial{
			{command: "rdmaradar top --once --output json | jq '.queues[] | select(.slow > 0) | {pid, device, qp, p99_ns, why}'"},
			{command: "rdmaradar top --once --sort p99 --filter mlx5_3"},
			{command: "curl --unix-socket /run/otelcol-rdma/radar.sock http://localhost/view", says: `"phase":"(running|impaired)"`},
			{command: "sudo rdmaradar doctor", says: "kernel", status: 2},
			{command: "bin/rdmaradar doctor", says: "kernel", status: 2},
			{command: "rdmaradar doctor --node-health", says: "^(not )?healthy", status: 1},
			{command: "2>&1 | grep -e 'radar page' -e '^Body'", says: "The radar page is served"},
		},
	},
	{
		command: "sed 's/${env:GATEWAY}/prometheus:9090/' config/prometheus.yaml > my-prometheus.yaml",
		leaves:  "my-prometheus.yaml", holding: "prometheus:9090(.|\n)*prometheus:9090",
	},
	{
		command: "GATEWAY=tempo:4317 RDMA_TOKEN=… bin/otelcol-rdma --config config/tempo.yaml --config my-prometheus.yaml",
		says:    ready, serves: true,
	},
	{
		command: "prometheus --config.file=config/prometheus/prometheus.yml --web.enable-otlp-receiver --enable-feature=exemplar-storage",
		says:    "Server is ready to receive web requests", serves: true,
	},
	{command: "otelcol-rdma validate --config FILE"},
	{command: "otelcol-rdma --version", says: "otelcol-rdma version"},
	{command: "otelcol-rdma --feature-gates=+extension.healthcheck.useComponentStatus --config FILE --config status.yaml", says: ready, serves: true},
	{
		command: "sed -i 's/^GATEWAY=.*/GATEWAY=gateway.example.com:4317/' /etc/otelcol-rdma/environment",
		leaves:  "environment", holding: "(?m)^GATEWAY=gateway.example.com:4317$",
	},
	{
		command: "(echo config:; sed 's/^/  /' config/gateway/agent-telemetry.yaml) > telemetry-values.yaml",
		leaves:  "telemetry-values.yaml", holding: `^config:\n +\S`,
	},
}

// elsewhere are commands that are run by a test, or by a target of make that begins with
// them or does the same.
var elsewhere = map[string]string{
	"make demo":  "TestFirstCommandOfTheReadme",
	"make build": "make backends",
	"make build && internal/e2e/build.sh prometheus":                  "make backends",
	"(cd internal/e2e && go test -tags backends -count 1 -v ./fleet)": "make backends",
	"go test -run TestCostIsDocumented ./receiver/rdmareceiver":       "make unit",
	"rdmaradar top":                       "TestTopOnTerminal",
	"bin/rdmaradar top":                   "TestTopOnTerminal",
	"systemctl enable --now otelcol-rdma": "make lab",
}

const (
	changesTheMachine = "it changes the machine of the tests; make lab does the like in its guests"
	needsCluster      = "it needs a cluster of Kubernetes"
	needsSlurm        = "it needs a controller of Slurm"
	needsService      = "it needs the service, which make lab has in its guests"
)

// notRun are commands that no test runs as they stand, and why.
var notRun = map[string]string{
	"make test": "it is what runs these tests",
	"dpkg -i out/packages/otelcol-rdma_0.1.0_amd64.deb out/packages/rdmaradar_0.1.0_amd64.deb":      changesTheMachine,
	"rpm -i out/packages/otelcol-rdma-0.1.0-1.x86_64.rpm out/packages/rdmaradar-0.1.0-1.x86_64.rpm": changesTheMachine,
	"rpm -e otelcol-rdma":                 changesTheMachine,
	"dpkg --purge otelcol-rdma":           changesTheMachine,
	"journalctl -u otelcol-rdma":          needsService,
	"systemctl stop otelcol-rdma":         needsService,
	"systemctl edit otelcol-rdma":         "it opens an editor",
	"systemctl cat otelcol-rdma":          needsService,
	"systemctl status otelcol-rdma":       needsService,
	"sysctl kernel.perf_event_paranoid=2": changesTheMachine,
	"sysctl kernel.bpf_stats_enabled=1; perf bench sched pipe -l 200000; sysctl kernel.bpf_stats_enabled=0": "it changes a setting of the kernel that all programs on this machine pay for",
	"bpftool prog show name sched_switch    # run_time_ns / run_cnt; the other is sched_waking":             "it needs the one above",
	"ssh -L 55690:127.0.0.1:55690 NODE":                                                  "it needs another machine",
	"RDMA_TOKEN=… otelcol-contrib --config config/gateway/gateway.yaml":                  "the contrib distribution is not built here; make backends runs the file with its components",
	"kubectl apply -k mine":                                                              needsCluster,
	"kubectl create namespace otelcol-rdma":                                              needsCluster,
	"kubectl label namespace otelcol-rdma pod-security.kubernetes.io/enforce=privileged": needsCluster,
	"helm install otelcol-rdma config/helm/otelcol-rdma --namespace otelcol-rdma --set image.repository=registry.example.com/otelcol-rdma --set gateway=gateway.example.com:4317": needsCluster,
	"skopeo copy oci:out/image:0.1.0 docker://registry.example.com/otelcol-rdma:0.1.0":                                                                                            "it needs a registry",
	"kubectl create secret generic otelcol-rdma --namespace otelcol-rdma --from-file=token":                                                                                       needsCluster,
	"kubectl create configmap gateway-ca --namespace otelcol-rdma --from-file=ca.crt":                                                                                             needsCluster,
	"amtool silence add --alertmanager.url=http://localhost:9093 --duration=4d --comment='taken away' alertname=RDMAReceiverGone host_name=gpu-017":                               "it needs an Alertmanager",
	"sinfo -R": needsSlurm,
	"scontrol update NodeName=NODE State=RESUME": needsSlurm,
}
