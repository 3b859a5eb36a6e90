package process

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// cgroupLimit bounds /proc/PID/cgroup: at most some 15 hierarchies, each with
// a path of at most 4096 bytes.
const cgroupLimit = 64 << 10

// cgroups is what the control groups of a process tell.
type cgroups struct {
	container           string
	slurmJob, slurmStep string
}

// readCgroups reads /proc/PID/cgroup; a kernel without control groups has no
// such file.
func readCgroups(dir files) (cgroups, error) {
	text, err := readSome(dir, "cgroup", cgroupLimit+1)
	if errors.Is(err, fs.ErrNotExist) {
		return cgroups{}, nil
	}
	if err != nil {
		return cgroups{}, part("control groups", err)
	}
	if len(text) > cgroupLimit {
		return cgroups{}, part("control groups", fmt.Errorf("longer than %d bytes", cgroupLimit))
	}
	return parseCgroups(string(text)), nil
}

// parseCgroups parses lines of "hierarchy:controllers:path" (cgroups(7)). The
// unified hierarchy, number 0, is asked first: with a version 1 hierarchy
// beside it, it is the one that systemd and the runtimes manage.
func parseCgroups(text string) cgroups {
	var unified, others []string
	for line := range strings.Lines(text) {
		hierarchy, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		_, path, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case hierarchy == "0":
			unified = append(unified, path)
		default:
			others = append(others, path)
		}
	}
	var found cgroups
	for _, path := range append(unified, others...) {
		components := strings.Split(path, "/")
		if found.container == "" {
			found.container = containerID(components)
		}
		if found.slurmJob == "" {
			found.slurmJob, found.slurmStep = slurmCgroup(components)
		}
	}
	return found
}

// containerIDLength is that of the ids of Docker, containerd, CRI-O and Podman.
const containerIDLength = 64

// containerID returns the id of the innermost container on a cgroup path.
func containerID(components []string) string {
	for i := len(components) - 1; i >= 0; i-- {
		id, manager := scopeID(components[i])
		if manager {
			return ""
		}
		if id != "" {
			return id
		}
	}
	return ""
}

// scopeID finds a container id in one component of a path. The runtimes write
//
//	<id>                              Docker, containerd and Kubernetes, cgroupfs driver
//	docker-<id>.scope                 Docker, systemd driver; alike cri-containerd-,
//	                                  nerdctl-, crio-, libpod-
//	…slice:cri-containerd:<id>        containerd, drivers of runtime and kubelet at odds
//	crio-conmon-<id>.scope            the process that looks after the container, alike
//	                                  libpod-conmon-: not a container
//
// manager is true for the last.
func scopeID(component string) (id string, manager bool) {
	name := strings.TrimSuffix(component, ".scope")
	start := strings.LastIndexAny(name, "-:") + 1
	id = name[start:]
	if len(id) != containerIDLength || !isHex(id) {
		return "", false
	}
	return id, strings.HasSuffix(name[:start], "conmon-")
}
