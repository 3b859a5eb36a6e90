package packaging

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// authorities are Mozilla's root certificates in PEM, as the Go project publishes them:
// the version in go.mod decides, not the machine that builds. Those that Mozilla trusts
// for a part alone are left out, since PEM cannot say which.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// Writing to memory does not fail, and the block has no headers.
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return text.Bytes()
}
