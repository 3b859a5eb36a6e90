package provider

// Bounds on what a Finder remembers.
const (
	maxFiles    = 1 << 16
	maxAnalyses = 1024
)

// known is what a Finder remembers of one file.
type known struct {
	stamp stamp
	kind  Kind
	// err is why a file is refused.
	err error
	// library and slots are set for libibverbs.
	library *Library
	slots   Slots
	// abi and results are set for a provider: its functions by the layout of
	// the libibverbs it is used with.
	abi     string
	results map[Slots]result
	// linked is what is known of a file of kind Other of which a process told that
	// it has rdma-core linked in, see Finder.Linked.
	linked linkedFile
}

type result struct {
	library *Library
	err     error
}

// analysisKey names the input of an analysis completely.
type analysisKey struct {
	fingerprint [32]byte
	slots       Slots
}

// remember adds to a map of bounded size. Which entries go when it is full
// does not matter much: they are found again.
func remember[K comparable, V any](into map[K]V, limit int, key K, v V) {
	if len(into) >= limit {
		drop := limit / 2
		for k := range into {
			if drop--; drop < 0 {
				break
			}
			delete(into, k)
		}
	}
	into[key] = v
}
