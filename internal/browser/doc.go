// Package browser holds the tests of the radar page in Chromium: what a person
// sees, with states made by hand and with the built collector. It has no code of
// its own; `make browser` runs it, and leaves screenshots in out/browser.
package browser
