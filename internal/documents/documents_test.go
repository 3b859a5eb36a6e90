package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Links to other sites are not followed: a test must not depend on them.
func TestLinksLeadSomewhere(t *testing.T) {
	all := documents(t)
	for name, d := range all {
		for _, link := range d.links {
			if isRemote(link) {
				continue
			}
			target, fragment, _ := strings.Cut(link, "#")
			path := name
			if target != "" {
				path = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(filepath.Join(root, path)); !assert.NoError(t, err, "%s links to %s", name, link) || fragment == "" {
				continue
			}
			assert.True(t, all[path].anchors[fragment], "%s links to %s: %s has no such heading", name, link, path)
		}
	}
}

func isRemote(link string) bool {
	return strings.HasPrefix(link, "https://") || strings.HasPrefix(link, "http://")
}

var target = regexp.MustCompile(`(?m)^([a-z0-9][a-z0-9 -]*):`)

// Every "make X" in a code span or block is a target of the Makefile.
func TestTargetsOfMakeExist(t *testing.T) {
	targets := targetsOfMake(t)
	for name, d := range documents(t) {
		for _, code := range d.code {
			for _, wanted := range made(code) {
				assert.True(t, targets[wanted], "%s says \"make %s\", and the Makefile has no such target", name, wanted)
			}
		}
	}
}

func targetsOfMake(t *testing.T) map[string]bool {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	targets := map[string]bool{}
	for _, rule := range target.FindAllStringSubmatch(string(makefile), -1) {
		for name := range strings.FieldsSeq(rule[1]) {
			targets[name] = true
		}
	}
	return targets
}

// made are the targets that commands ask of make.
func made(code string) []string {
	var targets []string
	for line := range strings.Lines(code) {
		words := strings.Fields(line)
		at := slices.Index(words, "make")
		if at >= 0 && at+1 < len(words) && isTarget.MatchString(words[at+1]) {
			targets = append(targets, words[at+1])
		}
	}
	return targets
}

var isTarget = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// Every word of code that looks like a path below a directory of the repository is
// one. What make writes is not there before it ran.
func TestFilesExist(t *testing.T) {
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	directories := map[string]bool{}
	for _, entry := range entries {
		directories[entry.Name()] = entry.IsDir() && !isOutput(entry.Name())
	}
	for name, d := range documents(t) {
		for _, code := range d.code {
			for word := range strings.FieldsSeq(code) {
				path := strings.Trim(strings.TrimPrefix(word, "./"), `"'.,:;()`)
				path = strings.TrimSuffix(path, "/...")
				first, rest, below := strings.Cut(path, "/")
				if !below || rest == "" || !directories[first] {
					continue
				}
				found, err := filepath.Glob(filepath.Join(root, path))
				require.NoError(t, err)
				assert.NotEmpty(t, found, "%s names %s, which does not exist", name, path)
			}
		}
	}
}

var (
	isTest   = regexp.MustCompile(`^Test[A-Z]\w*$`)
	function = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
)

// Every test that a document calls a proof is there.
func TestProofsExist(t *testing.T) {
	known := testsOfTheRepository(t)
	for name, d := range documents(t) {
		for _, code := range d.code {
			if isTest.MatchString(code) {
				assert.True(t, known[code], "%s names the test %s, which does not exist", name, code)
			}
		}
	}
}

func testsOfTheRepository(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	require.NoError(t, walk(".go", func(_ string, source []byte) {
		for _, found := range function.FindAllSubmatch(source, -1) {
			known[string(found[1])] = true
		}
	}))
	return known
}

var (
	isAlert = regexp.MustCompile(`^RDMA[A-Z][A-Za-z]+$`)
	alert   = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
)

// Every alert that a document tells of is one of the rules.
func TestAlertsExist(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join(root, "config/prometheus/rdma-alerts.yaml"))
	require.NoError(t, err)
	known := map[string]bool{}
	for _, found := range alert.FindAllSubmatch(rules, -1) {
		known[string(found[1])] = true
	}
	require.NotEmpty(t, known)
	for name, d := range documents(t) {
		for _, code := range d.code {
			if isAlert.MatchString(code) {
				assert.True(t, known[code], "%s names the alert %s, of which there is no rule", name, code)
			}
		}
	}
}
