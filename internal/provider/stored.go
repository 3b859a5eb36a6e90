package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// analyserVersion names what the analysis finds, and how that is written to
// disk. It must change whenever either does for any file: results of another
// version are not read. TestAnalyserVersion fails when it was forgotten.
const analyserVersion = 3

// storedAnalysis is the analysis of one provider on disk. Digest is in the name
// of the file; the others tell whether it is of the same input: a library of
// the same code may have other tables.
type storedAnalysis struct {
	Version             int
	Digest, Fingerprint checksum
	Slots               Slots
	Library             *Library
}

func analysisFile(digest [32]byte) string { return checksum(digest).String() + ".analysis.json" }

// load returns the analysis of the file from disk, nil if there is none that
// holds.
func (c *Cache) load(a *analysis, key analysisKey) *Library {
	if c == nil {
		return nil
	}
	digest := a.img.digest()
	name := analysisFile(digest)
	content := c.read(name)
	if content == nil {
		return nil
	}
	library, err := a.restore(content, digest, key)
	if err != nil && !errors.Is(err, errOther) {
		c.ignored(name, err)
	}
	return library
}

// save keeps an analysis.
func (c *Cache) save(key analysisKey, library *Library) {
	if c == nil {
		return
	}
	content, err := json.MarshalIndent(storedAnalysis{
		Version: analyserVersion, Digest: library.Digest, Fingerprint: key.fingerprint, Slots: key.slots, Library: library,
	}, "", " ")
	if err != nil {
		c.report(fmt.Errorf("encode the analysis of %s: %w", library.Name, err))
		return
	}
	c.write(analysisFile(library.Digest), append(content, '\n'))
}

// errOther says that what is stored is right, but of another version or input.
var errOther = errors.New("an analysis of another version or input")

// restore reads a stored analysis of the file and checks all of it that can be
// checked without analysing anew: above all, that a probe at any offset in it
// stands at the start of an instruction.
func (a *analysis) restore(content []byte, digest [32]byte, key analysisKey) (*Library, error) {
	// The version comes first: another one may have other members.
	var head struct{ Version int }
	if err := json.Unmarshal(content, &head); err != nil {
		return nil, err
	}
	if head.Version != analyserVersion {
		return nil, errOther
	}
	var stored storedAnalysis
	if err := decodeStrictly(content, &stored); err != nil {
		return nil, err
	}
	switch {
	case stored.Digest != digest:
		return nil, fmt.Errorf("it is of the code %v, not of %v", stored.Digest, checksum(digest))
	case stored.Fingerprint != key.fingerprint, stored.Slots != key.slots:
		return nil, errOther
	case stored.Library == nil:
		return nil, errors.New("it has no library")
	}
	stored.Library.Digest = digest
	if err := a.check(stored.Library); err != nil {
		return nil, err
	}
	return stored.Library, nil
}

// decodeStrictly reads one JSON value and takes nothing that it does not know.
func decodeStrictly(content []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}
