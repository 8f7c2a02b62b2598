package render

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestControlFree(t *testing.T) {
	want := "a\u202eb\u2066\u0085\x7f\u2028中文é\U000e0001\ufeff\x1b"
	var out bytes.Buffer
	if err := json.NewEncoder(ControlFree(&out)).Encode(want); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if hidden(r) {
			t.Errorf("%U is left in %q", r, out.String())
		}
	}
	var got string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}
