package fact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxBundle bounds the size of a bundle that is read back: 64 MiB.
const MaxBundle = 64 << 20

// ErrNotBundle says that a file is not a bundle at all.
var ErrNotBundle = errors.New("not a facts bundle")

// ReadBundle reads a bundle that WriteBundle wrote, here or elsewhere, now or
// years ago. Unknown fields are errors with their name: a bundle of a newer
// schema must not be judged as if the new facts were not there.
func ReadBundle(r io.Reader) (*Bundle, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxBundle+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > MaxBundle {
		return nil, fmt.Errorf("larger than %d MiB", MaxBundle>>20)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) || !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
			return nil, ErrNotBundle
		}
		return nil, fmt.Errorf("broken JSON: %w", err)
	}
	switch {
	case head.Schema == "":
		return nil, fmt.Errorf(`%w: no "schema"`, ErrNotBundle)
	case head.Schema != BundleSchema && strings.HasPrefix(head.Schema, "ncclinic.facts/"):
		return nil, fmt.Errorf("schema %q; this version reads %s", head.Schema, BundleSchema)
	case head.Schema != BundleSchema:
		return nil, fmt.Errorf("%w: schema %q", ErrNotBundle, Clip(head.Schema, 60))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var b Bundle
	if err := d.Decode(&b); err != nil {
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) {
			return nil, fmt.Errorf("%s: field %s: a %s in place of a value of type %s", BundleSchema, typ.Field, typ.Value, typ.Type)
		}
		return nil, fmt.Errorf("%s: %s", BundleSchema, strings.TrimPrefix(err.Error(), "json: "))
	}
	return &b, b.check()
}

// WriteBundle writes a bundle as indented JSON with a final newline.
func WriteBundle(w io.Writer, b *Bundle) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(b)
}

// check refuses a bundle whose parts contradict each other in a way that code relies on.
func (b *Bundle) check() error {
	for i := range b.Torch {
		if e := b.Torch[i].Entry; e < -1 || len(b.Python.Path) > 0 && e >= len(b.Python.Path) {
			return fmt.Errorf("torch[%d].entry is %d, python.path has %d entries", i, e, len(b.Python.Path))
		}
	}
	return nil
}
