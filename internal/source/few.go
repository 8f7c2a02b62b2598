package source

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// maxFew is how many elements a list of a manifest may have: more than any image has
// layers or platforms.
const maxFew = 4096

// few is a list in a manifest. Room is made for the elements that are there one by
// one and for no more than maxFew, as a list of a million empty ones is short.
type few[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (f *few[T]) UnmarshalJSON(b []byte) error {
	*f = nil
	if string(b) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return fmt.Errorf("not a list: %.20q", b)
	}
	for d.More() {
		if len(*f) == maxFew {
			return fmt.Errorf("a list of more than %d elements", maxFew)
		}
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		*f = append(*f, v)
	}
	return nil
}
