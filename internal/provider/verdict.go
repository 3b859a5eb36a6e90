package provider

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Verdict is what comparing the completion sites of one function with its
// entries and returns, on live traffic, has shown.
type Verdict uint8

// The verdicts.
const (
	// Unverified: they were not compared, or too long ago.
	Unverified Verdict = iota
	// Verified: every count was exact and every content equal.
	Verified
	// Wrong: a count or a content was another one.
	Wrong
)

// String returns "unverified", "verified" or "wrong".
func (v Verdict) String() string {
	switch v {
	case Verified:
		return "verified"
	case Wrong:
		return "wrong"
	default:
		return "unverified"
	}
}

// MarshalText gives the name of the verdict.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText takes the name of a verdict.
func (v *Verdict) UnmarshalText(text []byte) error { return fromName(v, text, Wrong+1) }

// How long a verdict holds. Right sites stay right as long as the code does; a
// limit all the same lets an error heal. Wrong ones may have had a reason
// outside of the library, such as a program that changes its memory.
const (
	verifiedHolds = 30 * 24 * time.Hour
	wrongHolds    = 24 * time.Hour
	// repeatedAfter is for how long the same verdict again is not written: sites
	// may be compared every few seconds.
	repeatedAfter = time.Hour
)

// Bounds on the verdicts that are kept.
const (
	maxVerdicts        = 4096
	maxLibraryVerdicts = 64
)

// Verdicts remember how the sites of functions turned out, by the code of the
// library and the sites themselves: copies of a library, as in containers, are
// verified once, and with a cache on disk so are libraries across restarts. It
// may be used by several goroutines.
type Verdicts struct {
	cache *Cache
	now   func() time.Time

	mutex sync.Mutex
	known map[verdictKey]judged
	// read are the libraries whose file was looked at.
	read map[[32]byte]bool
}

// verdictKey names what was judged: the sites too, because the same code with
// other tables may have others.
type verdictKey struct {
	digest   [32]byte
	function uint64
	sites    checksum
}

type judged struct {
	verdict Verdict
	at      time.Time
}

// storedVerdicts are the verdicts on one library on disk. Digest is in the name
// of the file.
type storedVerdicts struct {
	Version  int
	Digest   checksum
	Verdicts []storedVerdict
}

// storedVerdict is one of them. Function is a file offset, Sites the SHA-256 of
// the set of sites as JSON.
type storedVerdict struct {
	Function uint64
	Sites    checksum
	Verdict  Verdict
	At       time.Time
}

// NewVerdicts returns the verdicts of a cache on disk; with nil they last as
// long as the process.
func NewVerdicts(cache *Cache) *Verdicts {
	return &Verdicts{cache: cache, now: time.Now, known: map[verdictKey]judged{}, read: map[[32]byte]bool{}}
}

// Of returns the verdict on the sites of the function at a file offset of the
// library, see Target.Offset.
func (v *Verdicts) Of(library *Library, function uint64) Verdict {
	key, ok := keyOfSites(library, function)
	if !ok {
		return Unverified
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.recall(library.Digest)
	j := v.known[key]
	if !j.holds(v.now()) {
		return Unverified
	}
	return j.verdict
}

// Record keeps a verdict on the sites of a function. Unverified takes back what
// was recorded.
func (v *Verdicts) Record(library *Library, function uint64, verdict Verdict) {
	key, ok := keyOfSites(library, function)
	if !ok {
		return
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.recall(library.Digest)
	have := v.known[key]
	if have.verdict == verdict && have.holds(v.now()) && v.now().Sub(have.at) < repeatedAfter {
		return
	}
	delete(v.known, key)
	if verdict != Unverified {
		remember(v.known, maxVerdicts, key, judged{verdict, v.now()})
	}
	v.store(library.Digest)
}

func keyOfSites(library *Library, function uint64) (verdictKey, bool) {
	set, ok := library.SitesOf(function)
	if !ok {
		return verdictKey{}, false
	}
	content, err := json.Marshal(set)
	if err != nil {
		return verdictKey{}, false
	}
	return verdictKey{library.Digest, function, sha256.Sum256(content)}, true
}

// holds reports whether the verdict still counts. One from the future was
// written by a clock that was wrong.
func (j judged) holds(now time.Time) bool {
	limit := verifiedHolds
	if j.verdict == Wrong {
		limit = wrongHolds
	}
	age := now.Sub(j.at)
	return age >= 0 && age < limit
}

func verdictsFile(digest [32]byte) string { return checksum(digest).String() + ".verdicts.json" }

// recall reads the verdicts on a library from disk, once.
func (v *Verdicts) recall(digest [32]byte) {
	if v.cache == nil || v.read[digest] {
		return
	}
	remember(v.read, maxVerdicts, digest, true)
	content := v.cache.read(verdictsFile(digest))
	if content == nil {
		return
	}
	stored, err := decodeVerdicts(content, digest)
	if err != nil {
		v.cache.ignored(verdictsFile(digest), err)
		return
	}
	for _, s := range stored {
		remember(v.known, maxVerdicts, verdictKey{digest, s.Function, s.Sites}, judged{s.Verdict, s.At})
	}
}

// decodeVerdicts reads a file of verdicts; those of another version are none.
func decodeVerdicts(content []byte, digest [32]byte) ([]storedVerdict, error) {
	var head struct{ Version int }
	if err := json.Unmarshal(content, &head); err != nil {
		return nil, err
	}
	if head.Version != analyserVersion {
		return nil, nil
	}
	var stored storedVerdicts
	if err := decodeStrictly(content, &stored); err != nil {
		return nil, err
	}
	if stored.Digest != digest {
		return nil, fmt.Errorf("it is of the code %v, not of %v", stored.Digest, checksum(digest))
	}
	if len(stored.Verdicts) > maxLibraryVerdicts {
		return nil, fmt.Errorf("%d verdicts on one library", len(stored.Verdicts))
	}
	return stored.Verdicts, nil
}

// store writes what is known of one library and still holds, the newest first.
func (v *Verdicts) store(digest [32]byte) {
	if v.cache == nil {
		return
	}
	stored := storedVerdicts{Version: analyserVersion, Digest: digest}
	for key, j := range v.known {
		if key.digest == digest && j.holds(v.now()) {
			stored.Verdicts = append(stored.Verdicts, storedVerdict{key.function, key.sites, j.verdict, j.at.UTC()})
		}
	}
	stored.newest(maxLibraryVerdicts)
	content, err := json.MarshalIndent(stored, "", " ")
	if err != nil {
		v.cache.report(fmt.Errorf("encode verdicts: %w", err))
		return
	}
	v.cache.write(verdictsFile(digest), append(content, '\n'))
}

func (s *storedVerdicts) newest(n int) {
	slices.SortFunc(s.Verdicts, func(a, b storedVerdict) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Sites.String(), b.Sites.String()))
	})
	s.Verdicts = s.Verdicts[:min(n, len(s.Verdicts))]
}
