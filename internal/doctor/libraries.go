package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// libraryFacts are the verbs libraries of the machine.
type libraryFacts struct {
	// installed are those in the library directories, used those of processes.
	installed, used []provider.File
	errors          []error
	counters        provider.Counters
	own             sight
}

func (s *System) checkLibraries(ctx context.Context) []Finding {
	f := libraryFacts{own: s.sight()}
	installed, err := s.finder.Installed(s.root)
	f.installed = installed
	if err != nil {
		f.errors = append(f.errors, err)
	}
	used, errs := s.finder.All(ctx)
	f.used, f.errors = used, append(f.errors, errs...)
	f.counters = s.finder.Counters()
	return judgeLibraries(f)
}

func judgeLibraries(f libraryFacts) []Finding {
	known := map[provider.FileID]bool{}
	var atSites, otherwise []string
	for _, file := range append(slices.Clone(f.used), f.installed...) {
		if known[file.ID] || !isProvider(file) {
			continue
		}
		known[file.ID] = true
		if missing := withoutSites(file.Library); len(missing) > 0 {
			otherwise = append(otherwise, fmt.Sprintf("%s (%s)", file.Library.Name, strings.Join(functionNames(missing), ", ")))
		} else {
			atSites = append(atSites, file.Library.Name)
		}
	}
	return append(summaryOf(&f, len(known), atSites, otherwise), refusals(&f)...)
}

// withoutSites are the functions of the data path that are observed by entry and return.
func withoutSites(library *provider.Library) []provider.SiteSet {
	var missing []provider.SiteSet
	for _, set := range library.Sites {
		if tracer.WithoutSites(set) != "" {
			missing = append(missing, set)
		}
	}
	return missing
}

func functionNames(sets []provider.SiteSet) []string {
	var names []string
	for _, set := range sets {
		names = append(names, set.Function.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// summaryOf counts the providers.
func summaryOf(f *libraryFacts, all int, atSites, otherwise []string) []Finding {
	if all == 0 {
		return []Finding{{
			Level: Note, What: "no provider of rdma-core is installed, and no process" + f.unseen() + " has one",
			Means: "Processes that bring their own, as in containers, are found when they start.",
		}}
	}
	// libibverbs loads the providers of all devices that there might be: that a process has
	// one loaded does not say that it uses it.
	findings := []Finding{{What: fmt.Sprintf("%s of rdma-core, %d installed, %d loaded by processes%s; observed without a probe on an empty poll: %s",
		plural(all, "provider", "providers"), providers(f.installed), providers(f.used), f.unseen(), orNone(list(atSites)))}}
	if len(otherwise) > 0 {
		findings = append(findings, Finding{
			Level: Note, What: "observed by entry and return: " + list(otherwise),
			Means: "Where such a poll_cq is used, every empty poll costs a probe, and it may be observed for a part of the time.",
		})
	}
	return findings
}

func isProvider(file provider.File) bool {
	return file.Library.Kind == provider.Provider || file.Library.Linked
}

func providers(files []provider.File) (n int) {
	for _, file := range files {
		if isProvider(file) {
			n++
		}
	}
	return n
}

func orNone(names string) string {
	if names == "" {
		return "none"
	}
	return names
}

// denied are the processes and libraries that could not be looked into, for want of a
// capability or though this process has it.
func (f *libraryFacts) denied() (wanting, closed []*provider.PermissionError) {
	for _, err := range f.errors {
		denied := (*provider.PermissionError)(nil)
		switch {
		case !errors.As(err, &denied):
		case f.own.lacks(denied.Capability):
			wanting = append(wanting, denied)
		default:
			closed = append(closed, denied)
		}
	}
	return wanting, closed
}

// unseen says that not all could be looked into, of which the check of capabilities tells
// why. There may be more than errors, of which there is a bound.
func (f *libraryFacts) unseen() string {
	if wanting, _ := f.denied(); len(wanting) == 0 {
		return ""
	}
	return " that could be looked into"
}

// refusals are the libraries and processes that could not be looked at.
func refusals(f *libraryFacts) []Finding {
	const most = 5
	var findings []Finding
	for _, err := range f.errors {
		if errors.As(err, new(*provider.PermissionError)) || errors.Is(err, fs.ErrNotExist) || len(findings) == most {
			continue
		}
		level := Warning
		if errors.Is(err, context.DeadlineExceeded) {
			level = Unknown
		}
		findings = append(findings, Finding{Level: level, What: "not traced: " + err.Error()})
	}
	if _, closed := f.denied(); len(closed) > 0 {
		first := closed[0]
		findings = append(findings, Finding{
			Level: Unknown, What: fmt.Sprintf("%s could not be looked into though this process has %s, the first: %s %s: %v",
				plural(len(closed), "process or library", "processes or libraries"), first.Capability, first.Op, first.Path, first.Err),
			Means: deniedByOthers,
		})
	}
	if n := f.counters.Refused32Bit; n > 0 {
		findings = append(findings, Finding{
			Level: Note, What: plural(int(n), "32-bit verbs library", "32-bit verbs libraries"), Means: "32-bit processes are not traced.",
		})
	}
	return findings
}
