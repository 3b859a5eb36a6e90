// Package documents holds the tests of what people read, every Markdown file of the
// repository: links lead somewhere, files that they name exist, and commands that they
// name are run, or known not to be. It has no code of its own.
package documents
