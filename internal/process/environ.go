package process

import (
	"bytes"
	"fmt"
	"io"
)

// The keys that have a meaning of their own; those of the launchers stand in
// their table.
const (
	keyServiceName        = "OTEL_SERVICE_NAME"
	keyResourceAttributes = "OTEL_RESOURCE_ATTRIBUTES"
	keyTraceparent        = "TRACEPARENT"
	keyPMIxNamespace      = "PMIX_NAMESPACE"
)

const (
	// environLimit bounds how much of an environment is read, in bytes.
	environLimit = 1 << 20
	// environChunk is how much of it is in memory at a time.
	environChunk = 4 << 10
	// keyLimit is longer than every key of the allow-list.
	keyLimit = 64
	// valueLimit is the longest value kept. A longer one is dropped, not cut:
	// a part of a value is a wrong value.
	valueLimit = 8 << 10
)

// allowedKeys is the allow-list, each key mapped to itself: nothing else of an
// environment is kept.
func allowedKeys() map[string]string {
	allowed := map[string]string{}
	allow := func(keys ...string) {
		for _, key := range keys {
			allowed[key] = key
		}
	}
	allow(keyServiceName, keyResourceAttributes, keyTraceparent, keyPMIxNamespace)
	allow(slurmJobKeys...)
	allow(slurmStepKeys...)
	for _, l := range launchers {
		allow(l.rank...)
		allow(l.localRank...)
		allow(l.worldSize...)
	}
	return allowed
}

// readEnviron returns the allowed variables of a process. It is empty without
// an error where there is no memory to read, as with kernel threads.
func readEnviron(dir files) (map[string]string, error) {
	file, err := dir.open("environ")
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, part("environment", err)
	}
	defer file.Close()
	values, err := scanEnviron(file)
	return values, part("environment", err)
}

// scanEnviron reads NUL-terminated KEY=VALUE strings chunk by chunk, and wipes
// each chunk. With an error the values are those before it.
func scanEnviron(environ io.Reader) (map[string]string, error) {
	scanner := newEnvironScanner()
	var chunk [environChunk]byte
	for total := 0; total < environLimit; {
		n, err := environ.Read(chunk[:min(environChunk, environLimit-total)])
		scanner.feed(chunk[:n])
		clear(chunk[:n])
		total += n
		if err == io.EOF {
			return scanner.values, nil
		}
		if err != nil {
			return scanner.values, err
		}
	}
	return scanner.values, fmt.Errorf("longer than %d bytes, the rest was not read", environLimit)
}

// environScanner takes the allowed variables out of a stream. It holds one key,
// or one allowed value, at a time.
type environScanner struct {
	allowed, values map[string]string
	// key collects the bytes before "="; after it, name is the allowed key
	// whose value is collected, "" while the bytes are skipped.
	key     []byte
	inValue bool
	name    string
	value   []byte
}

func newEnvironScanner() *environScanner {
	return &environScanner{
		allowed: allowedKeys(),
		values:  map[string]string{},
		key:     make([]byte, 0, keyLimit+1),
	}
}

func (s *environScanner) feed(chunk []byte) {
	for len(chunk) > 0 {
		if !s.inValue {
			chunk = s.feedKey(chunk)
			continue
		}
		chunk = s.feedValue(chunk)
	}
}

// feedKey collects up to "=" and returns what follows.
func (s *environScanner) feedKey(chunk []byte) []byte {
	end := bytes.IndexAny(chunk, "=\x00")
	if end < 0 {
		s.collectKey(chunk)
		return nil
	}
	if chunk[end] == 0 {
		s.reset()
		return chunk[end+1:]
	}
	s.collectKey(chunk[:end])
	s.inValue = true
	s.name = s.wanted()
	s.wipeKey()
	return chunk[end+1:]
}

// collectKey keeps one byte more than any allowed key has, so that a long key
// cannot pass for its beginning.
func (s *environScanner) collectKey(part []byte) {
	room := keyLimit + 1 - len(s.key)
	s.key = append(s.key, part[:min(len(part), room)]...)
}

// wanted returns the key if its value is to be kept. Like getenv, the first of
// several equal keys counts. The lookup makes no copy of a key that is not
// allowed.
func (s *environScanner) wanted() string {
	name := s.allowed[string(s.key)]
	if _, seen := s.values[name]; seen {
		return ""
	}
	return name
}

// feedValue collects or skips up to the NUL and returns what follows.
func (s *environScanner) feedValue(chunk []byte) []byte {
	end := bytes.IndexByte(chunk, 0)
	part := chunk
	if end >= 0 {
		part = chunk[:end]
	}
	if s.name != "" {
		s.collectValue(part)
	}
	if end < 0 {
		return nil
	}
	if s.name != "" {
		s.values[s.name] = string(s.value)
	}
	s.reset()
	return chunk[end+1:]
}

func (s *environScanner) collectValue(part []byte) {
	if len(s.value)+len(part) > valueLimit {
		s.name = ""
		return
	}
	s.value = append(s.value, part...)
}

func (s *environScanner) reset() {
	s.wipeKey()
	clear(s.value)
	s.value = s.value[:0]
	s.inValue, s.name = false, ""
}

func (s *environScanner) wipeKey() {
	clear(s.key)
	s.key = s.key[:0]
}
