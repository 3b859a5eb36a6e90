// Package radar holds the state of a node that a person looks at: which queue is
// slow, since when and why. A receiver feeds a [State]; a [Board], such as the page
// of an extension, shows it. Nothing that is shown is made while nobody looks.
package radar

// Board shows states. An extension of the collector implements it, and a receiver
// finds it among the extensions of its host. It is safe for concurrent use.
type Board interface {
	// Show shows the state until end is called, in place of one that was shown
	// before. end may be called more than once.
	Show(*State) (end func())
}
