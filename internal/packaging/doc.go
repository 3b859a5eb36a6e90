// Package packaging makes what the collector is rolled out as: packages for Debian and
// Red Hat and their relatives, and a container image. Its tests hold these, the
// manifests for Kubernetes, the unit of systemd and the prolog of Slurm to what they
// are for.
//
// `make packages` and `make image` run its two commands.
package packaging
