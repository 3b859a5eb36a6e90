package doctor

import (
	"path/filepath"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// sight is by what this process looks into others, which is not that by which a collector
// does.
type sight struct {
	// held are its capabilities, nil when they are not known.
	held map[string]bool
	root bool
}

// deniedByOthers says why a process with the capability is denied nonetheless.
const deniedByOthers = "A security module or a user namespace denies it."

// sight reads that of this process.
func (s *System) sight() sight {
	status := filepath.Join(s.root, "proc/self/status")
	// What cannot be read is told where the capabilities are.
	held, _ := tracer.HeldCapabilities(status)
	// Real, effective and saved.
	users := strings.Fields(fieldsOf(status, ":")["Uid"])
	return sight{held: held, root: len(users) > 1 && users[1] == "0"}
}

// lacks says whether a capability is missing, which a text such as that of a
// [provider.PermissionError] begins with.
func (s sight) lacks(capability string) bool {
	name, _, _ := strings.Cut(capability, " ")
	return !s.held[name]
}

// missing are the capabilities that are known to be missing for looking into any process,
// and any library of one.
func (s sight) missing() []string {
	if s.held == nil {
		return nil
	}
	var names []string
	for _, name := range []string{"CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"} {
		if s.lacks(name) {
			names = append(names, name)
		}
	}
	return names
}

// remedy says how to have all capabilities.
func (s sight) remedy() string {
	if s.root {
		return "Root lacks a capability here, as in a container: run this where it has all"
	}
	return "Run this as root"
}
