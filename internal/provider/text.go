package provider

import (
	"encoding/hex"
	"fmt"
)

// The text forms below are those of the cache on disk: a person can read it,
// and what is no name of a value is an error when it is read back.

// MarshalText gives the name of the function.
func (f Function) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText takes the name of a function.
func (f *Function) UnmarshalText(text []byte) error { return fromName(f, text, numFunctions) }

// MarshalText gives the name of the kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes the name of a kind of file.
func (k *Kind) UnmarshalText(text []byte) error { return fromName(k, text, Provider+1) }

// MarshalText gives the name of the kind.
func (k SiteKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes the name of a kind of set.
func (k *SiteKind) UnmarshalText(text []byte) error { return fromName(k, text, SitesFull+1) }

// String returns "none", "register" or "memory".
func (k PlaceKind) String() string {
	switch k {
	case PlaceRegister:
		return "register"
	case PlaceMemory:
		return "memory"
	default:
		return "none"
	}
}

// MarshalText gives the name of the kind.
func (k PlaceKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes the name of a kind of place.
func (k *PlaceKind) UnmarshalText(text []byte) error { return fromName(k, text, PlaceMemory+1) }

// fromName finds the value below the limit that has the name.
func fromName[T interface {
	~uint8
	fmt.Stringer
}](into *T, text []byte, limit T) error {
	for v := range limit {
		if v.String() == string(text) {
			*into = v
			return nil
		}
	}
	return fmt.Errorf("%q is no name of a %T", text, *into)
}

// checksum is a SHA-256, in hexadecimal where it is text.
type checksum [32]byte

// String returns 64 hexadecimal digits.
func (c checksum) String() string { return hex.EncodeToString(c[:]) }

// MarshalText gives the hexadecimal digits.
func (c checksum) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText takes 64 hexadecimal digits.
func (c *checksum) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(c)) {
		return fmt.Errorf("%d characters where a SHA-256 has %d", len(text), hex.EncodedLen(len(c)))
	}
	_, err := hex.Decode(c[:], text)
	return err
}
