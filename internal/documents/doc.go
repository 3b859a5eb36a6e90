// Package documents holds the tests of what people read, every Markdown file of the
// repository: links lead somewhere, and commands and files that they name exist. It
// has no code of its own.
package documents
