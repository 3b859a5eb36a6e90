package documents

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// root is that of the repository.
const root = "../.."

// document is what the tests need of a Markdown file.
type document struct {
	// links are the targets of links and images.
	links []string
	// anchors are the fragments that a link may name, as GitHub makes them.
	anchors map[string]bool
	// code is what stands in code spans and blocks, commands those of it that are to be run.
	code     []string
	commands []string
}

// documents reads every Markdown file of the repository, by its path from the root.
func documents(t *testing.T) map[string]document {
	t.Helper()
	found := map[string]document{}
	require.NoError(t, walk(".md", func(name string, source []byte) { found[name] = parse(source) }))
	require.Contains(t, found, "README.md")
	return found
}

// walk visits every file of the repository whose name ends so.
func walk(ending string, visit func(name string, content []byte)) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && strings.HasPrefix(entry.Name(), ".") || isOutput(entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ending {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		visit(name, content)
		return err
	})
}

// isOutput reports whether a directory has what make built or a tool fetched.
func isOutput(name string) bool {
	return name == "out" || name == "bin" || name == "node_modules"
}

func parse(source []byte) document {
	source = generated.ReplaceAll(source, nil)
	d := document{anchors: map[string]bool{}}
	parser := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser()
	seen := map[string]int{}
	_ = ast.Walk(parser.Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Link:
			d.links = append(d.links, string(n.Destination))
		case *ast.Image:
			d.links = append(d.links, string(n.Destination))
		case *ast.Heading:
			name := anchorOf(plain(n, source))
			if seen[name]++; seen[name] > 1 {
				name = fmt.Sprintf("%s-%d", name, seen[name]-1)
			}
			d.anchors[name] = true
		case *ast.CodeSpan:
			code := plain(n, source)
			d.code = append(d.code, code)
			if isCommand.MatchString(code) {
				d.commands = append(d.commands, code)
			}
		case *ast.FencedCodeBlock:
			d.code = append(d.code, lines(n, source))
		case *ast.CodeBlock:
			code := lines(n, source)
			d.code = append(d.code, code)
			d.commands = append(d.commands, commandsIn(code)...)
		}
		return ast.WalkContinue, nil
	})
	return d
}

// plain is the text below a node, without its markup.
func plain(node ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			out.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

func lines(node ast.Node, source []byte) string {
	var out strings.Builder
	for i := range node.Lines().Len() {
		segment := node.Lines().At(i)
		out.Write(segment.Value(source))
	}
	return out.String()
}

// anchorOf is the fragment that GitHub gives a heading: lower case, spaces as
// hyphens, without other punctuation.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}
