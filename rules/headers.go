package rules

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"go.yaml.in/yaml/v3"
)

// The headers of the embedded rule files, as JSON: reading YAML took half of
// the time of a whole check. `make docs` writes them; a test holds that they are
// current. An entry counts only when the checksum of the YAML agrees, so a rule
// that was edited and not yet indexed still works as it is written.
//
//go:embed headers
var headerIndex embed.FS

// indexed is one entry: the checksum of the YAML and what it decodes to.
type indexed[H any] struct {
	Sum    uint32 `json:"sum"`
	Header H      `json:"h"`
}

// readIndex returns the index of a family by file name; nil when there is none.
func readIndex[H any](fsys fs.FS, family string) map[string]indexed[H] {
	if fsys != fs.FS(embedded) && fsys != fs.FS(embeddedLog) {
		return nil // rules of a site
	}
	raw, err := headerIndex.ReadFile("headers/" + family + ".json")
	if err != nil {
		return nil
	}
	var m map[string]indexed[H]
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// header decodes the YAML at the top of a rule file, from the index when it is current.
func header[H any](name string, y []byte, idx map[string]indexed[H]) (H, error) {
	if e, ok := idx[name]; ok && e.Sum == crc32.ChecksumIEEE(y) {
		return e.Header, nil
	}
	var h H
	d := yaml.NewDecoder(bytes.NewReader(y))
	d.KnownFields(true)
	if err := d.Decode(&h); err != nil {
		return h, fmt.Errorf("%s: header: %w", name, err)
	}
	return h, nil
}

// readHeader reads the part of a rule file before its first section: a small one
// of a file that is mostly text and samples, which nobody may want.
func readHeader(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var raw []byte
	for buf := make([]byte, 4<<10); ; {
		n, err := f.Read(buf)
		from := max(0, len(raw)-len(section)+1)
		raw = append(raw, buf[:n]...)
		if i := bytes.Index(raw[from:], section); i >= 0 {
			return raw[:from+i+1], nil
		}
		switch {
		case err == io.EOF:
			return raw, nil
		case err != nil:
			return nil, err
		}
	}
}

// section begins the first one.
var section = []byte("\n-- ")

// IndexHeaders writes the index of one family of a knowledge base: what readIndex reads.
func IndexHeaders[H any](fsys fs.FS, family string) ([]byte, error) {
	names, err := fs.Glob(fsys, family+"/*.txtar")
	if err != nil {
		return nil, err
	}
	m := map[string]indexed[H]{}
	for _, name := range names {
		y, err := readHeader(fsys, name)
		if err != nil {
			return nil, err
		}
		h, err := header[H](name, y, nil)
		if err != nil {
			return nil, err
		}
		m[name] = indexed[H]{crc32.ChecksumIEEE(y), h}
	}
	out, err := json.MarshalIndent(m, "", "")
	return append(out, '\n'), err
}
